import { afterEach, describe, expect, it } from "vitest";
import { AnsweringBroker, at, Desk } from "./desk.ts";

interface Tool {
  readonly digest: string;
  readonly definition: string;
  readonly unseen?: true;
}

let broker: AnsweringBroker | undefined;

afterEach(() => broker?.remove());

/** A broker at which these tools wait, or are in service. */
async function house(tools: Map<string, Tool>, refused: readonly string[] = []): Promise<AnsweringBroker> {
  broker = await AnsweringBroker.start({
    "tools.list": ({ prefix }) => ({
      tools: [...tools]
        .filter(([name]) => name.startsWith(String(prefix)))
        .map(([name, { definition }]) => ({ name, in_service: false, definition })),
    }),
    "tools.diff": ({ tool }) => {
      const { digest, unseen } = tools.get(String(tool))!;
      const one = { digest, definition: { name: tool, description: "a\u202eb\u001b[2J" } };
      return {
        tool,
        role: "fs",
        announced: unseen === undefined ? one : null,
        pinned: unseen === undefined ? null : one,
      };
    },
    "tools.accept": ({ tool, digest }) =>
      refused.includes(String(tool))
        ? { status: "failed", message: "bad_arguments: No definition with that digest waits." }
        : { tool, digest, accepted: true },
  });
  return broker;
}

const waits = (digest: string): Tool => ({ digest, definition: "waiting" });

const TOOLS = (): Map<string, Tool> =>
  new Map([
    ["fs.a", waits("a1")],
    ["fs.b", { digest: "b1", definition: "unseen", unseen: true }],
    ["fs.c", { digest: "c1", definition: "accepted" }],
    ["fsx.d", waits("d1")],
  ]);

async function digestOf(of: AnsweringBroker): Promise<string> {
  const desk = new Desk();
  expect(await at(desk, of, "tools", "diff", "fs.*", "--json")).toBe(0);
  return JSON.parse(desk.out_.trimEnd().split("\n").at(-1)!).digest;
}

describe("definitions below a prefix", () => {
  it("are shown, all that wait and none else, escaped, and last what accepts them", async () => {
    const desk = new Desk();
    const of = await house(TOOLS());
    expect(await at(desk, of, "tools", "diff", "fs.*")).toBe(0);
    expect(of.of("tools.diff")).toEqual([{ tool: "fs.a" }, { tool: "fs.b" }]);
    expect(desk.out_).toContain("description: a\\u{202e}b\\u{1b}[2J");
    expect(desk.out_).toMatch(
      /\n2 definitions to look at\..*\n {2}callgate tools accept 'fs\.\*' [0-9a-f]{64}\n$/,
    );
  });

  it("go into service together, each by the digest that was shown", async () => {
    const of = await house(TOOLS());
    const desk = new Desk();
    expect(await at(desk, of, "tools", "accept", "fs.*", await digestOf(of))).toBe(0);
    expect(of.of("tools.accept")).toEqual([
      { tool: "fs.a", digest: "a1" },
      { tool: "fs.b", digest: "b1" },
    ]);
    expect(desk.out_).toBe("accepted: 2 definitions, in service as they were shown\n");
  });

  it.each<[string, (tools: Map<string, Tool>) => void]>([
    ["one of them has changed", (tools) => tools.set("fs.a", waits("a2"))],
    ["another has come", (tools) => tools.set("fs.z", waits("z1"))],
    ["one is gone", (tools) => tools.delete("fs.b")],
    ["all are gone", (tools) => tools.clear()],
  ])("are not accepted, none of them, where meanwhile %s", async (_, change) => {
    const tools = TOOLS();
    const of = await house(tools);
    const digest = await digestOf(of);
    change(tools);
    const desk = new Desk();
    expect(await at(desk, of, "tools", "accept", "fs.*", digest)).toBe(4);
    expect(of.of("tools.accept")).toEqual([]);
    expect(desk.err_).toContain("nothing was accepted");
  });

  it("that can't be accepted do not keep the others out, and are told of", async () => {
    const of = await house(TOOLS(), ["fs.a"]);
    const desk = new Desk();
    expect(await at(desk, of, "tools", "accept", "fs.*", await digestOf(of))).toBe(4);
    expect(desk.err_).toMatch(/^fs\.a: .*bad_arguments/);
    expect(desk.out_).toBe("accepted: 1 definition, in service as they were shown\n");
  });

  it("are none: that is said", async () => {
    const desk = new Desk();
    expect(await at(desk, await house(new Map()), "tools", "diff", "fs.*")).toBe(0);
    expect(desk.out_).toBe("nothing below fs. waits to be looked at\n");
  });
});
