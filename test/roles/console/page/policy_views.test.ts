import { describe, expect, it } from "vitest";
import { DATA_CLASSES } from "../../../../src/base/labels.ts";
import type { OpenPath, PolicyReach, Reachable, ToolReach } from "../../../../src/client/load_answers.ts";
import { diffOf } from "../../../../src/roles/console/page/definitions.ts";
import {
  changedBetween,
  pathWords,
  pictureOf,
  spansOf,
  verdictAt,
} from "../../../../src/roles/console/page/reach.ts";

const PUBLIC = { class: "public", untrusted: false };

/** One verdict a taint: four with nothing untrusted read, four after. */
function tool(name: string, effect: string, verdicts: readonly Reachable[], untrusted = false): ToolReach {
  const at = [false, true].flatMap((trust, i) =>
    DATA_CLASSES.map((one, j) => ({
      class: one,
      untrusted: trust,
      verdict: verdicts[i * 4 + j] ?? "deny",
      by: [`g${i}`],
    })),
  );
  return { tool: name, provider: "p", effect, brings: { class: "public", untrusted }, at };
}

const ALLOW: readonly Reachable[] = Array(8).fill("allow");
const WHILE_CLEAN: readonly Reachable[] = ["allow", "allow", "deny", "deny", "deny", "deny", "deny", "deny"];
const ASK: readonly Reachable[] = Array(8).fill("ask");

const path = (more: Partial<OpenPath> = {}): OpenPath => ({
  role: "chat",
  source: "fetch",
  through: [],
  sink_role: "chat",
  sink: "send",
  effect: "send",
  taint: { class: "public", untrusted: true },
  carries: "internal",
  verdict: "allow",
  by: ["g"],
  ...more,
});

const reach = (tools: readonly ToolReach[], paths: readonly OpenPath[] = []): PolicyReach => ({
  roles: [{ role: "chat", tools }],
  paths,
  more: false,
});

describe("a row of the table", () => {
  it("folds neighbouring taints that come to the same", () => {
    const spans = spansOf(tool("send", "send", WHILE_CLEAN), false);
    expect(spans.map(({ verdict, taints }) => [verdict, taints.length])).toEqual([
      ["allow", 2],
      ["deny", 2],
    ]);
  });

  it("is denied at a taint that nothing is told of", () => {
    expect(verdictAt({ ...tool("send", "send", ALLOW), at: [] }, PUBLIC)).toBe("deny");
  });

  it("tells what another taint would change", () => {
    const tools = [tool("send", "send", WHILE_CLEAN), tool("fetch", "read", ALLOW)];
    expect(changedBetween(tools, { class: "public", untrusted: true }, PUBLIC)).toEqual([
      { tool: "send", from: "deny", to: "allow" },
    ]);
  });
});

describe("the picture", () => {
  it("marks as open what is on a way, and else what the sink is after something untrusted", () => {
    const tools = [
      tool("fetch", "read", ALLOW, true),
      tool("send", "send", ALLOW),
      tool("pay", "spend", ASK),
    ];
    const { lines, sources, sinks } = pictureOf(reach(tools, [path()]));
    expect(sources.map(({ name }) => name)).toEqual(["fetch"]);
    expect(sinks.map(({ name }) => name)).toEqual(["send", "pay"]);
    expect(lines.map(({ from, to, kind }) => [from, to, kind])).toEqual([
      ["source fetch", "role chat", "open"],
      ["role chat", "sink send", "open"],
      ["role chat", "sink pay", "asked"],
    ]);
  });

  it("leaves out the broker's own tools, what is denied throughout, and writing", () => {
    const never: readonly Reachable[] = Array(8).fill("deny");
    const tools = [
      tool("callgate.reload", "execute", ALLOW, true),
      tool("pay", "spend", never),
      tool("write", "write", ALLOW),
    ];
    expect(pictureOf(reach(tools)).lines).toEqual([]);
  });

  it("draws a way through a store from role to role", () => {
    const hop = { by: "store", role: "chat", tool: "put", store: "notes", taken_with: "take" } as const;
    const { lines } = pictureOf(reach([], [path({ through: [hop], sink_role: "helper" })]));
    expect(lines.map(({ from, to }) => `${from} > ${to}`)).toEqual([
      "source fetch > role chat",
      "role chat > role helper",
      "role helper > sink send",
    ]);
  });

  it("says that it is not whole where there is no room, and drops no way for a harmless line", () => {
    const many = Array.from({ length: 30 }, (_, i) => tool(`a${i}`, "read", ALLOW, true));
    const { more, sources, lines } = pictureOf(
      reach([...many, tool("zz", "read", ALLOW, true)], [path({ source: "zz" })]),
    );
    expect([more, sources.length, sources[0]?.name]).toEqual([true, 14, "zz"]);
    expect(lines.filter(({ kind }) => kind === "open")).toHaveLength(2);
  });
});

describe("a way in words", () => {
  it("names every step of it", () => {
    const through = [
      { by: "store", role: "chat", tool: "put", store: "notes", taken_with: "take" },
      { by: "call", role: "helper", tool: "run", store: "", taken_with: null },
    ] as const;
    expect(pathWords(path({ through, sink_role: "shell", verdict: "conditional" }))).toBe(
      "chat reads fetch; chat puts it into store notes with put, helper takes it out with take; helper calls run, whose provider shell calls in turn; then shell calls send (send) without a person for calls that fit a condition.",
    );
  });
});

describe("two definitions beside each other", () => {
  it("differ in exactly the lines that were taken away or added", () => {
    const lines = diffOf(["{", "a", "b", "}"], ["{", "b", "c", "}"]);
    expect(lines.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      "same {",
      "gone a",
      "same b",
      "new c",
      "same }",
    ]);
  });

  it.each([
    [[], ["x"]],
    [["x"], []],
    [
      ["x", "x", "x"],
      ["x", "x"],
    ],
    [["a"], ["b"]],
  ])("give both texts back: %j and %j", (before, after) => {
    const lines = diffOf(before, after);
    expect(lines.filter(({ kind }) => kind !== "new").map(({ text }) => text)).toEqual(before);
    expect(lines.filter(({ kind }) => kind !== "gone").map(({ text }) => text)).toEqual(after);
  });

  it("are compared in bounded time, also where both are long and nothing is equal", () => {
    const before = Array.from({ length: 20_000 }, (_, i) => `a${i}`);
    const after = Array.from({ length: 20_000 }, (_, i) => `b${i}`);
    expect(diffOf(before, after)).toHaveLength(40_000);
  });
});
