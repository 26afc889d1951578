// The tools that ask the client for something while they run, as protocols before 2026 have it. What can't be asked is
// told as the tool's error.

const text = (words) => ({ type: "text", text: words });

async function told(ask, words) {
  try {
    return { content: [text(words(await ask()))] };
  } catch (error) {
    return { isError: true, content: [text(`It can't be asked: ${error.message}`)] };
  }
}

const titled = (names) => names.map(([value, title]) => ({ const: value, title }));

const DEFAULTS = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};
const ENUMS = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: {
    type: "string",
    oneOf: titled([
      ["value1", "First Option"],
      ["value2", "Second Option"],
    ]),
  },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: {
    type: "array",
    items: {
      anyOf: titled([
        ["value1", "First Choice"],
        ["value2", "Second Choice"],
      ]),
    },
  },
};

export function elicitedTools(tool) {
  const wants = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
  tool(
    "test_sampling",
    ({ prompt }, { mcpReq }) =>
      told(
        () =>
          mcpReq.requestSampling({
            messages: [{ role: "user", content: text(prompt) }],
            maxTokens: 100,
          }),
        ({ content }) => `LLM response: ${content.text}`,
      ),
    wants("prompt"),
  );
  const form = (mcpReq, message, properties) => () =>
    mcpReq.elicitInput({ mode: "form", message, requestedSchema: { type: "object", properties } });
  const answer = (before) => (given) =>
    `${before}action=${given.action}, content=${JSON.stringify(given.content ?? {})}`;
  const person = { username: { type: "string" }, email: { type: "string" } };
  tool(
    "test_elicitation",
    ({ message }, { mcpReq }) => told(form(mcpReq, message, person), answer("User response: ")),
    wants("message"),
  );
  const completed = answer("Elicitation completed: ");
  tool("test_elicitation_sep1034_defaults", (_, { mcpReq }) =>
    told(form(mcpReq, "Please look at the defaults", DEFAULTS), completed),
  );
  tool("test_elicitation_sep1330_enums", (_, { mcpReq }) =>
    told(form(mcpReq, "Please choose", ENUMS), completed),
  );
}
