// The pictures of a policy: what is in them, and that no name can be more than a name there.

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { CLEAN } from "../../src/base/labels.ts";
import { dotGraph, dotText } from "../../src/cli/reach_dot.ts";
import { type ReachGraph, reachGraph } from "../../src/cli/reach_graph.ts";
import { mermaidGraph, mermaidText } from "../../src/cli/reach_mermaid.ts";
import { pathsText, reachTable, reachText } from "../../src/cli/reach_views.ts";
import type { PolicyReach } from "../../src/client/load_answers.ts";
import { describeWith } from "../needs.ts";
import { condition, grant } from "../policy/grants.ts";
import { allows, CLEAN_FLOOR, reachOf, tool } from "../policy/reach_world.ts";

const TOOLS = [
  tool("web.fetch", "read"),
  tool("web.list", "read"),
  tool("mail.send", "send", { floor: CLEAN_FLOOR }),
  tool("bank.pay", "spend", { floor: CLEAN_FLOOR }),
  tool("shell.run", "execute", { floor: CLEAN_FLOOR }),
  tool("notes.add", "write", { floor: CLEAN_FLOOR }),
  tool("notes.read", "read", { floor: CLEAN_FLOOR }),
];
const ROLES = { agent: [], writer: [], web: [], notes: [], idle: [] };
const REACH: PolicyReach = reachOf({
  roles: ROLES,
  tools: TOOLS,
  grants: [
    allows("agent-reads", ["web.*", "notes.add"]),
    allows("agent-runs", ["shell.run"], { taintMax: CLEAN }),
    grant("agent-pays", "ask", { tools: ["bank.pay"] }),
    allows("writer-reads", ["notes.read"]),
    allows("writer-sends", ["mail.send"], { when: condition("match") }),
    allows("idle-looks", ["callgate.status"]),
  ],
});

function lines({ boxes, lines: drawn }: ReachGraph): readonly string[] {
  const named = new Map(boxes.map(({ id, lines: names }) => [id, names.join("+")]));
  return drawn.map(
    ({ from, to, kind, conditional, label }) =>
      `${named.get(from)} > ${named.get(to)}: ${kind}${conditional ? " if" : ""} ${label}`,
  );
}

describe("the picture of a policy", () => {
  it("shows each way in red, what asks in amber, what ends with the taint in green, and tools that stand alike as one", () => {
    expect(lines(reachGraph(REACH)).toSorted()).toEqual([
      "agent > bank.pay: asked agent-pays",
      "agent > notes.add: free agent-reads",
      "agent > notes: open notes.add",
      "agent > shell.run: clean agent-runs",
      "notes > writer: open notes.read",
      "notes.read > writer: open writer-reads",
      "shell.run > agent: open agent-runs",
      "web.fetch+web.list > agent: open agent-reads",
      "writer > mail.send: open if writer-sends",
    ]);
  });

  it("leaves out roles without a line and the broker's own tools", () => {
    const names = reachGraph(REACH).boxes.flatMap(({ lines: one }) => one);
    expect(names).not.toContain("idle");
    expect(names.join(" ")).not.toContain("callgate");
  });

  it("of a policy that opens nothing is one without boxes", () => {
    const empty = reachGraph({ roles: [], paths: [], more: false });
    expect(empty).toEqual({ boxes: [], lines: [] });
    expect(mermaidGraph(empty)).toBe("flowchart LR\n");
  });
});

/** Names that would leave their quotes, be a tag, a comment, an escape or a statement. */
const HOSTILE = [
  'a"; evil [shape=box]; "b',
  "a\\",
  "\\N\\G",
  "<b>x</b>",
  "a]|end",
  "%% x",
  "a\nb",
  "a\u202eb",
  "#35;x",
  '"',
];

function hostile(name: string): PolicyReach {
  return JSON.parse(
    JSON.stringify(REACH)
      .replaceAll('"agent"', JSON.stringify(name))
      .replaceAll('"agent-reads"', JSON.stringify(name)),
  ) as PolicyReach;
}

describe("names in the pictures and texts", () => {
  it.each(HOSTILE)("stay names in Mermaid, which has only quoted texts of harmless letters: %j", (name) => {
    const drawn = mermaidGraph(reachGraph(hostile(name)));
    const text = `"[A-Za-z0-9 ._,:*+()#;/<>-]*"`;
    const grammar = [
      "flowchart LR",
      String.raw`  n\d+(?:\[${text}\]|\(${text}\)|\[\(${text}\)\]):::\w+`,
      String.raw`  n\d+ (?:-->|-\.->)(?:\|${text}\|)? n\d+`,
      String.raw`  classDef \w+ [a-z0-9#:,]+`,
      String.raw`  linkStyle \d+ stroke:#[0-9a-f]{6},stroke-width:\dpx`,
    ];
    for (const line of drawn.trimEnd().split("\n"))
      expect(line).toMatch(new RegExp(`^(?:${grammar.join("|")})$`));
    expect(mermaidText(name)).toMatch(/^(?:[A-Za-z0-9 ._,:*+-]|#\d+;)*$/);
  });

  it.each(HOSTILE)("end no text in Graphviz's language: %j", (name) => {
    expect(`"${dotText(name)}"`).toMatch(/^"(?:[^"\\]|\\["\\])*"$/);
  });

  it.each(HOSTILE)("begin no line of their own where they are told in words: %j", (name) => {
    const reach = hostile(name);
    expect(reachText(reach).split("\n")).toHaveLength(reachText(REACH).split("\n").length);
    expect(`${reachTable(reach)}${pathsText(reach)}`).not.toMatch(/[\u202e\u001b]/);
  });
});

describeWith(["dot"], "Graphviz", () => {
  it.each(["agent", ...HOSTILE])("draws the picture without a complaint, and of %j no box more", (name) => {
    const { stdout, stderr, status } = spawnSync("dot", ["-Tplain"], {
      input: dotGraph(reachGraph(hostile(name))),
      encoding: "utf8",
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const { boxes, lines: drawn } = reachGraph(REACH);
    expect(stdout.match(/^node /gm)).toHaveLength(boxes.length);
    expect(stdout.match(/^edge /gm)).toHaveLength(drawn.length);
  });
});

describe("the table", () => {
  it("folds classes that are alike, and tells up to which class where they are not", () => {
    const upTo = (taintMax: typeof CLEAN, more = {}) =>
      reachTable(
        reachOf({
          roles: ROLES,
          tools: TOOLS,
          grants: [allows("agent-x", ["mail.send"], { taintMax, ...more })],
        }),
      ).split("\n")[2];
    expect(upTo({ class: "restricted", untrusted: true })).toBe("  mail.send  send    allow    allow");
    expect(upTo({ class: "internal", untrusted: false })).toBe("  mail.send  send    allow to internal  -");
    expect(upTo({ class: "internal", untrusted: false }, { aboveTaint: "ask" })).toBe(
      "  mail.send  send    allow to internal, ask  ask",
    );
  });

  it("says that everything is denied where nothing is reached", () => {
    expect(reachTable({ roles: [] })).toBe("no role reaches any tool: everything is denied\n");
  });

  it("tells of a prefix what its provider may announce there", () => {
    const reach = reachOf({
      roles: { agent: [], web: ["web."] },
      tools: [],
      grants: [allows("agent-all", ["web.*"])],
    });
    expect(reachTable(reach)).toMatch(/^ {2}web\.\* {2}execute {2}allow {4}allow$/m);
    expect(reachTable(reach)).toContain("may announce there one day");
  });

  it("fits a terminal of 80 columns, whatever it says of classes", () => {
    const worst = [
      allows("agent-a", ["notes.read"], {
        taintMax: { class: "confidential", untrusted: true },
        aboveTaint: "ask" as const,
      }),
    ];
    for (const line of reachTable(reachOf({ roles: ROLES, tools: TOOLS, grants: worst })).split("\n"))
      expect(line.length).toBeLessThanOrEqual(80);
  });
});
