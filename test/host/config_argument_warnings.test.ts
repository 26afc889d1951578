import { describe, expect, it } from "vitest";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { ANNOUNCES, APPROVER, compiled, EXTRA_LINE, minimal } from "./config_fixture.ts";

/** With the real compilers, since it is about what they know of a condition and a schema. */
async function warningsOf(text: string): Promise<readonly string[]> {
  const ports = {
    loadConditions: loadConditionCompiler,
    compileSchema: async (schema: Parameters<typeof compileArgumentsSchema>[0]) =>
      compileArgumentsSchema(schema),
  };
  const { warnings } = await compiled(text, ports);
  return warnings.map(({ line, code, message }) => `${line} ${code} ${message.match(/"[^"]+"/)?.[0]}`);
}

const E = EXTRA_LINE;
const deny = (tools: string, when: string) =>
  minimal(`[[grants]]\nid = "g"\nrole = "agent"\ntools = ${tools}\neffect = "deny"\nwhen = '${when}'\n`);

describe("a condition on an argument that no tool takes", () => {
  it.each([
    'has(args.pth) && under(args.pth, "/etc")',
    '"pth" in args',
    'has(args.path) && args["pth"] == "x"',
    "[1].exists(x, args.path == args.pth)",
  ])("is a deny that protects nothing, and is told: %s", async (when) => {
    expect(await warningsOf(deny('["read_file"]', when))).toEqual([`${E + 5} unknown_argument "pth"`]);
    expect(await warningsOf(deny('["*"]', when))).toEqual([`${E + 5} unknown_argument "pth"`]);
  });

  it("is not told where a tool takes it, or may", async () => {
    const when = 'has(args.path) && under(args.path, "/etc")';
    expect(await warningsOf(deny('["read_file"]', when))).toEqual([]);
    const open = `${deny('["*"]', "has(args.pth)")}[tools.t]\nrole = "files"\neffect = "read"\n`;
    expect((await warningsOf(open)).filter((one) => one.includes("unknown_argument"))).toEqual([]);
    const announces = ANNOUNCES.replace('"files"', '"agent"');
    const announced = `${deny('["*"]', "has(args.pth)")}${announces}`;
    expect(await warningsOf(announced.replace("users = [", 'provides = ["x."]\nusers = ['))).toEqual([]);
    expect(await warningsOf(deny('["callgate.status"]', "has(args.pth)"))).toEqual([]);
  });
});

describe("a tool that sends or spends", () => {
  const tool = (rest: string, properties = '{ to = { type = "string" } }') =>
    minimal(
      `[tools.t]\nrole = "files"\n${rest}\n` +
        `schema = { type = "object", properties = ${properties}, additionalProperties = false }\n` +
        '[[grants]]\nid = "g"\nrole = "agent"\ntools = ["t"]\neffect = "ask"\ntaint_max = "public"\ntaint_untrusted = false\n' +
        APPROVER,
    );

  it("is asked where to, unless its owner has said that nothing tells", async () => {
    for (const effect of ["send", "spend"])
      expect(await warningsOf(tool(`effect = "${effect}"`))).toEqual([
        `${E + 2} no_destinations "${effect}"`,
      ]);
    expect(await warningsOf(tool('effect = "send"\ndestinations = ["to"]'))).toEqual([]);
    expect(await warningsOf(tool('effect = "send"\ndestinations = []'))).toEqual([]);
    expect(await warningsOf(tool('effect = "read"'))).toEqual([]);
    expect(await warningsOf(tool('effect = "send"', "{}"))).toEqual([]);
  });
});

describe("a condition on the words of a request", () => {
  const conditional = (effect: string, when: string) =>
    minimal(
      `[[grants]]\nid = "g"\nrole = "agent"\ntools = ["read_file"]\neffect = "${effect}"\nwhen = '${when}'\n` +
        (effect === "deny" ? "" : 'taint_max = "public"\ntaint_untrusted = false\n'),
    )
      .replace('"internal"', '"public"')
      .replace("taint_untrusted = true", "taint_untrusted = false");

  it("is told where the role's sessions have none, and what the grant then comes to", async () => {
    for (const [effect, outcome] of [
      ["allow", "does not match"],
      ["deny", "matches always"],
    ] as const) {
      const ports = { loadConditions: loadConditionCompiler };
      const { warnings } = await compiled(conditional(effect, "in_request(args.path)"), ports);
      const told = warnings.filter(({ code }) => code === "no_request");
      expect(told.map(({ line }) => line)).toEqual([E + 5]);
      expect(told[0]?.message).toContain(outcome);
    }
  });

  it("is not told where others open the sessions, or where it asks for nothing of the kind", async () => {
    const opened = conditional("deny", "in_request(args.path)").replace(
      "users = [",
      'sessions = "opened"\nusers = [',
    );
    expect((await warningsOf(opened)).filter((one) => one.includes("no_request"))).toEqual([]);
    const other = conditional("deny", 'args.path == "in_request"');
    expect((await warningsOf(other)).filter((one) => one.includes("no_request"))).toEqual([]);
  });
});
