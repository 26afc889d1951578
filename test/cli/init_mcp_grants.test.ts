import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readChoice } from "../../src/cli/init_choice.ts";
import { configText } from "../../src/cli/init_config.ts";
import { suggestedGrants } from "../../src/cli/init_mcp_grants.ts";
import type { Seen, SeenTool, ToolHints } from "../../src/cli/mcp_look.ts";
import type { McpServersRead } from "../../src/cli/mcp_servers_file.ts";
import { compileConfig } from "../../src/host/config.ts";
import { identitiesOf } from "../../src/host/config_identities.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { brokerToolName } from "../../src/roles/mcp/definition.ts";
import { NOW_MS } from "./desk.ts";
import { PASSWD } from "./init_rig.ts";

const TAKEN: McpServersRead = {
  form: "mcpServers",
  leftOut: [],
  servers: [
    {
      ...{ name: "fs", role: "fs", holes: [], remarks: [] },
      reach: { kind: "command", command: "x", args: [], env: {}, cwd: undefined },
    },
  ],
};

function config(look: Seen | string): string {
  const flags = { session: "cli" } as unknown as Parameters<typeof readChoice>[1];
  const choice = readChoice(["/srv/gate"], flags, 1000, () => TAKEN);
  return configText(choice, new Map([["fs", look]]));
}

async function grantsIn(text: string) {
  const loaded = await compileConfig(text, "/srv/gate/callgate.toml", {
    identities: identitiesOf(PASSWD, ""),
    loadConditions: loadConditionCompiler,
    compileSchema: compileArgumentsSchema,
    readRelative: async () => ({ ok: false, fault: "there are no other files" }),
    nowMs: NOW_MS,
  });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
  return loaded.value.config.policy.grants;
}

/** As an owner takes them into force: the paragraphs whose first line is a remark of two #. */
function inForce(text: string): string {
  return text.replace(/^##[^\n]*(?:\n#[^\n]*)+/gm, (block) => block.replace(/^#/gm, ""));
}

const hints = (readOnly?: boolean, openWorld?: boolean, destructive?: boolean): ToolHints => ({
  readOnly,
  openWorld,
  destructive,
});

const tool = (name: string, own: ToolHints, words = "Words."): SeenTool => ({
  name: brokerToolName("fs.", name),
  hints: own,
  words,
});

describe("what a server says of its tools", () => {
  const look: Seen = {
    leftOut: [],
    tools: [
      tool("read", hints(true, false)),
      tool("fetch", hints(true)),
      tool("fetch_more", hints(true, true)),
      tool("write", hints(false, false, true)),
      tool("silent", hints()),
    ],
  };

  it("puts nothing into force", async () => {
    const ids = (await grantsIn(config(look))).map(({ id }) => id);
    expect(ids).toEqual(["fs-announces", "agent-itself", "operator-operates"]);
  });

  it("is suggested by the worse reading of each hint, and loads once it is taken out of the #", async () => {
    const grants = new Map((await grantsIn(inForce(config(look)))).map((grant) => [grant.id, grant]));
    expect(grants.get("agent-reads-fs")).toMatchObject({
      effect: "allow",
      tools: ["fs.read"],
      taintMax: { class: "internal", untrusted: true },
    });
    expect(grants.get("agent-fetches-fs")).toMatchObject({
      effect: "allow",
      tools: ["fs.fetch", "fs.fetch_more"],
      taintMax: { class: "public", untrusted: false },
    });
    expect(grants.get("agent-asks-fs")).toMatchObject({ effect: "ask", tools: ["fs.write", "fs.silent"] });
  });

  it("is not known of a server that nobody looked at: then a person may be asked about all", async () => {
    const text = config("init could not look: it\nended");
    expect(text).toContain("init could not look: it\\nended");
    const grants = await grantsIn(inForce(text));
    expect(grants.find(({ id }) => id === "agent-asks-fs")).toMatchObject({ effect: "ask", tools: ["fs.*"] });
  });
});

describe("a hostile server's words", () => {
  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom(
        "\n",
        "\r",
        "\u2028",
        "\u2029",
        "\u0085",
        "\u202e",
        "\0",
        "\u001b",
        '"',
        "'",
        "#",
        "\\",
        "]",
        "[[",
      ),
      fc.constantFrom('\n[[grants]]\nid = "x"\n', '"]\neffect = "allow"\n', "'''", '"""'),
      fc.string({ unit: "binary", maxLength: 3 }),
    ),
    maxLength: 40,
  });
  const tri = fc.option(fc.boolean(), { nil: undefined });
  const seen = fc.record({
    leftOut: fc.array(nasty, { maxLength: 2 }),
    tools: fc.uniqueArray(
      fc.record({ own: nasty, words: nasty, readOnly: tri, openWorld: tri, destructive: tri }),
      { maxLength: 4, selector: ({ own }) => brokerToolName("fs.", own) },
    ),
  });
  const lookOf = ({ leftOut, tools }: typeof seen extends fc.Arbitrary<infer S> ? S : never): Seen => ({
    leftOut,
    tools: tools.map(({ own, words, ...rest }) => tool(own, rest, words)),
  });

  it("stay in comments of one line, each that shows what it is", () => {
    fc.assert(
      fc.property(seen, (given) => {
        for (const line of suggestedGrants("fs", ["agent"], lookOf(given)).split("\n")) {
          expect(line === "" || line.startsWith("#")).toBe(true);
          expect(line).not.toMatch(/\p{C}|\p{Zl}|\p{Zp}/u);
        }
      }),
      { numRuns: 300 },
    );
  });

  it("grant nothing, also once the suggestions are in force", async () => {
    await fc.assert(
      fc.asyncProperty(seen, async (given) => {
        const text = config(lookOf(given));
        expect((await grantsIn(text)).map(({ id }) => id)).toEqual([
          ...["fs-announces", "agent-itself", "operator-operates"],
        ]);
        const known = given.tools.map(({ own }) => brokerToolName("fs.", own));
        for (const { role, tools, id } of await grantsIn(inForce(text)))
          if (role === "agent" && id !== "agent-itself")
            expect(known).toEqual(expect.arrayContaining([...tools]));
      }),
      { numRuns: 40 },
    );
  }, 60_000);
});
