import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson } from "../../../src/base/json.ts";
import { ARGUMENTS_LIMITS } from "../../../src/base/limits.ts";
import { compileArgumentsSchema } from "../../../src/policy/schema.ts";
import { modelToolDefinition, turnSchema } from "../../../src/roles/model/definition.ts";
import { parseTurn } from "../../../src/roles/model/turn_arguments.ts";

const TURN = { model: "m", instructions: "i", input: [{ UserText: { text: "hi" } }], max_output_tokens: 5 };

function parsed(changes: object): ReturnType<typeof parseTurn> {
  return parseTurn(JSON.stringify({ ...TURN, ...changes }));
}

async function schemaCheck() {
  const schema = parseJson(JSON.stringify(turnSchema()), ARGUMENTS_LIMITS);
  if (!schema.ok) throw new Error(schema.fault.message);
  const compiled = await compileArgumentsSchema(schema.value);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

describe("the arguments of model.turn", () => {
  it("are a request with the usual defaults, and opaque state in hexadecimal", () => {
    const state = { provider: "p", model: "m", opaque: "00ff" };
    const turn = parsed({ input: [{ ReasoningState: state }] });
    expect(turn).toMatchObject({
      ok: true,
      value: {
        turn: {
          ...TURN,
          input: [{ ReasoningState: { ...state, opaque: Buffer.from([0, 255]) } }],
          tools: [],
          tool_choice: "auto",
          parallel_tool_calls: true,
          reasoning_effort: null,
          output_schema_json: null,
          output_format_name: null,
        },
      },
    });
  });

  it.each([
    [{ model: undefined }, "model is missing"],
    [{ model: "" }, "model must be"],
    [{ input: {} }, "input must be a list"],
    [{ input: [{ UserText: { text: "" } }] }, "input[0].UserText.text must be"],
    [
      { input: [{ UserText: { text: "a" }, AssistantText: { text: "b" } }] },
      "input[0] must be an object with one member",
    ],
    [
      { input: [{ ReasoningState: { provider: "p", model: "m", opaque: "0G" } }] },
      "input[0].ReasoningState.opaque",
    ],
    [{ tools: [{ name: "a b", description: "d", parameters_json: "{}" }] }, "tools[0].name"],
    [{ tools: [{ name: "a", description: "d", parameters_json: "[]" }] }, "tools[0].parameters_json"],
    [{ tool_choice: "required" }, "tool_choice required needs a tool"],
    [{ output_format_name: "x" }, "output_format_name is null exactly"],
    [{ max_output_tokens: 0 }, "max_output_tokens must be a whole number from 1"],
    [{ max_output_tokens: 1.5 }, "max_output_tokens must be a whole number"],
    [{ request_id: "mine" }, "a member that is not known"],
    [{ CANARY: 1 }, "a member that is not known"],
    [{ tools: null }, "tools must be a list"],
  ])("that are wrong are refused by place and not by value: %j", (changes, says) => {
    const turn = parsed(changes);
    expect(turn).toEqual({ ok: false, fault: expect.stringContaining(says) });
    expect(JSON.stringify(turn)).not.toContain("CANARY");
  });

  it("that are no strict JSON object are refused", () => {
    for (const text of [
      "",
      "[]",
      "{",
      '{"model":"m","model":"n"}',
      "[".repeat(100_000),
      '{"__proto__":{"model":"m"}}',
    ])
      expect(parseTurn(text).ok).toBe(false);
  });

  it("have one digest for one meaning, and another for another", () => {
    const digest = (text: string) => {
      const turn = parseTurn(text);
      return turn.ok ? turn.value.digest.toString("hex") : undefined;
    };
    const same = [
      '{"model":"m","instructions":"i","input":[],"max_output_tokens":5}',
      '{ "input": [], "max_output_tokens": 5, "instructions":"i", "model":"\\u006d"}',
    ];
    expect(new Set(same.map(digest)).size).toBe(1);
    expect(digest(same[0]!)).not.toBe(
      digest('{"model":"m","instructions":"j","input":[],"max_output_tokens":5}'),
    );
  });
});

describe("the schema of model.turn", () => {
  it("is one that a broker takes, closed, and is the file that configs name", async () => {
    expect((await schemaCheck()).closed).toBe(true);
    const file = readFileSync(new URL("../../../examples/model_turn.schema.json", import.meta.url), "utf8");
    expect(JSON.parse(file)).toEqual(turnSchema());
  });

  it("lets through whatever the role takes", async () => {
    const text = fc.string({ minLength: 1, unit: "binary" }).filter((one) => one.isWellFormed());
    const item = fc.oneof(
      fc.record({ UserText: fc.record({ text }) }),
      fc.record({ ToolResult: fc.record({ call_id: fc.stringMatching(/^[!-~]{1,64}$/), output: text }) }),
      fc.record({
        ReasoningState: fc.record({
          provider: fc.constant("p"),
          model: text,
          opaque: fc.stringMatching(/^([0-9a-f]{2}){1,8}$/),
        }),
      }),
    );
    const turn = fc.record(
      {
        model: text,
        instructions: text,
        input: fc.array(item, { maxLength: 4 }),
        max_output_tokens: fc.integer({ min: -1, max: 2 ** 33 }),
        reasoning_effort: fc.option(fc.constantFrom("low", "a b")),
        parallel_tool_calls: fc.boolean(),
        tool_choice: fc.constantFrom("auto", "required", "none"),
      },
      { requiredKeys: ["model", "instructions", "input", "max_output_tokens"] },
    );
    const { check } = await schemaCheck();
    let taken = 0;
    fc.assert(
      fc.property(turn, (args) => {
        const json = JSON.stringify(args);
        if (!parseTurn(json).ok) return;
        taken += 1;
        const value = parseJson(json, ARGUMENTS_LIMITS);
        if (!value.ok || !(value.value instanceof Map)) throw new Error("it is an object");
        expect(check(value.value)).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
    expect(taken).toBeGreaterThan(20);
  });

  it("has the tool's prefix in its name and says that it reaches outside", () => {
    expect(modelToolDefinition("local.")).toMatchObject({
      name: "local.model.turn",
      annotations: { readOnlyHint: false, openWorldHint: true },
    });
  });
});
