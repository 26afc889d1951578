import { afterEach, describe, expect, it } from "vitest";
import { AnsweringBroker, type Answers, at, Desk, NOW_MS } from "./desk.ts";
import { question } from "./questions.ts";

// Lists that take more than one answer of the broker, and calls whose decision is looked up in the record.

let broker: AnsweringBroker | undefined;
afterEach(() => broker?.remove());

async function ran(answers: Answers, ...words: string[]) {
  broker = await AnsweringBroker.start(answers);
  const desk = new Desk();
  const status = await at(desk, broker, ...words);
  return { desk, status, asked: broker };
}

function call(n: number, more: object = {}) {
  return {
    role: "agent",
    session: "one",
    call: String(n),
    tool: "read",
    state: "ended",
    status: "result",
    code: null,
    asked_at_ms: NOW_MS - n * 1000,
    ended_at_ms: NOW_MS - n * 1000 + 5,
    ...more,
  };
}

/** A broker that has calls 1 to `kept`, and tells at most `most` at once. */
function callsOf(kept: number, most = 500) {
  return ({ before, limit = 100 }: Readonly<Record<string, unknown>>) => {
    const from = Number(before ?? 1);
    const count = Math.min(Number(limit), most, kept - from + 1);
    const next = from + count > kept ? null : String(from + count);
    return { calls: Array.from({ length: count }, (_, n) => call(from + n)), all_seen: next === null, next };
  };
}

describe("callgate calls list", () => {
  it("asks page by page until it has as many as were asked for, and says that there are more", async () => {
    const { desk, asked } = await ran({ "calls.list": callsOf(5000) }, "calls", "list", "--limit", "1200");
    expect(asked.of("calls.list").map(({ limit, before }) => [limit, before])).toEqual([
      [500, undefined],
      [500, "501"],
      [200, "1001"],
    ]);
    expect(desk.out_.match(/^agent /gm)).toHaveLength(1200);
    expect(desk.out_).toContain("1,200 calls shown, and there are more: --limit NUMBER or --all\n");
  });

  it("--all shows all, also where an answer has none, and --json is still one object", async () => {
    const pages = callsOf(1200);
    const sparse = (args: Readonly<Record<string, unknown>>) =>
      args["before"] === undefined ? { calls: [], all_seen: false, next: "1" } : pages(args);
    const { desk } = await ran({ "calls.list": sparse }, "calls", "list", "--all", "--json");
    const lines = desk.out_.trimEnd().split("\n");
    const { calls, next } = JSON.parse(lines[0] ?? "") as { calls: unknown[]; next: unknown };
    expect([lines.length, calls.length, next]).toEqual([1, 1200, null]);
  });

  it("shows a call that ended meanwhile once, as it was told last", async () => {
    const first = { calls: [call(1, { state: "running", status: null, ended_at_ms: null })], next: "x" };
    const answers = ({ before }: Readonly<Record<string, unknown>>) =>
      before === undefined ? first : { calls: [call(1)], all_seen: true, next: null };
    const { desk } = await ran({ "calls.list": answers }, "calls", "list");
    expect(desk.out_.match(/^agent .*$/gm)).toEqual([expect.stringMatching(/read {2}result/)]);
  });

  it("takes every filter, and times as moments or as how long ago", async () => {
    const words = "--role agent --of one --tool read --status failed --code timeout --since 2h".split(" ");
    const { asked, status } = await ran(
      { "calls.list": callsOf(1) },
      ...["calls", "list", ...words, "--until", "2026-11-30T11:00:00Z"],
    );
    expect(status).toBe(0);
    expect(asked.of("calls.list")).toEqual([
      {
        role: "agent",
        session: "one",
        tool: "read",
        status: "failed",
        code: "timeout",
        since_ms: NOW_MS - 7_200_000,
        until_ms: NOW_MS - 3_600_000,
      },
    ]);
  });

  it.each([
    ["a time that is none", ["--since", "yesterday"]],
    ["a status that there is not", ["--status", "good"]],
    ["a code that there is not", ["--code", "bad"]],
    ["both a limit and all", ["--limit", "5", "--all"]],
  ])("takes %s as wrong use", async (_, words) => {
    const { status, asked, desk } = await ran({}, "calls", "list", ...words);
    expect([status, asked.asked]).toEqual([2, []]);
    expect(desk.err_).not.toBe("");
  });
});

describe("callgate approvals list", () => {
  function waiting(kept: number) {
    return ({ after, limit = 200 }: Readonly<Record<string, unknown>>) => {
      const from = Number(after ?? 0);
      const count = Math.min(Number(limit), 200, kept - from);
      const id = (n: number) => `${String(n).padStart(8, "0")}${"a".repeat(24)}`;
      const approvals = Array.from({ length: count }, (_, n) => question({ approval: id(from + n) }));
      const more = from + count < kept;
      return { approvals, more, next: more ? String(from + count) : null, total: kept };
    };
  }

  it("shows 200 of thousands and says how many wait", async () => {
    const { desk } = await ran({ "approvals.list": waiting(5000) }, "approvals", "list");
    expect(desk.out_).toMatch(/^200 of 5,000 questions that wait: --limit NUMBER shows more/m);
  });

  it("shows thousands where that is asked for, and no such line then", async () => {
    const { desk, asked } = await ran(
      { "approvals.list": waiting(5000) },
      "approvals",
      "list",
      "--limit",
      "5000",
    );
    expect(asked.of("approvals.list")).toHaveLength(25);
    expect(desk.out_.match(/send_mail/g)).toHaveLength(5000);
    expect(desk.out_).not.toContain("that wait:");
  });

  it("one of them is found by the beginning of its id, on whichever page it is", async () => {
    const show = { status: "failed", message: "bad_arguments: seen. Nothing ran." };
    const { asked } = await ran(
      { "approvals.list": waiting(5000), "approvals.show": show },
      ...["approvals", "show", "00004321"],
    );
    expect(asked.of("approvals.show")).toEqual([{ approval: `00004321${"a".repeat(24)}` }]);
  });
});

const WHY = {
  role: "agent",
  session: "one",
  call: "7",
  tool: "send_mail",
  verdict: "deny",
  at_ms: NOW_MS - 60_000,
  denied: "denied_by_grant",
  row: "deny",
  grant: "no-mail",
  condition: "match",
  reason: null,
  taint: { class: "internal", untrusted: true },
  approval: null,
  grants: [],
  counted: null,
  from: "audit",
};

const KEPT = { ...call(7, { tool: "send_mail" }), arguments: '{"to":"x"}', decision: null };

const NOW = {
  role: "agent",
  session: "one",
  taint: { class: "public", untrusted: false },
  verdict: "allow",
  row: "allow",
  reason: null,
  grant: "mails",
  owner_says: null,
  grants: [],
};

describe("callgate grants explain --call", () => {
  const words = ["grants", "explain", "--call", "7", "--of", "one", "--role", "agent"];
  const named = { call: "7", session: "one", role: "agent" };

  it("shows what was decided, and beside it what would be decided now about the same arguments", async () => {
    const answers = { "calls.why": WHY, "calls.show": KEPT, "grants.explain": NOW };
    const { desk, asked, status } = await ran(answers, ...words);
    expect(status).toBe(0);
    expect(asked.of("calls.why")).toEqual([named]);
    expect(asked.of("grants.explain")).toEqual([
      { role: "agent", session: "one", tool: "send_mail", arguments: '{"to":"x"}' },
    ]);
    expect(desk.out_).toMatch(/^denied +denied_by_grant$/m);
    expect(desk.out_).toMatch(/^decided by +grant no-mail \(row deny\)$/m);
    expect(desk.out_).toMatch(/^condition +held$/m);
    expect(desk.out_).toMatch(/^taint then +internal, untrusted$/m);
    expect(desk.out_).toContain("now something else would be decided:\nallow: by grant mails, row allow\n");
  });

  it("says that the same would be decided, or that nobody can say", async () => {
    const same = { ...NOW, verdict: "deny", row: "deny", grant: "no-mail" };
    const first = await ran({ "calls.why": WHY, "calls.show": KEPT, "grants.explain": same }, ...words);
    expect(first.desk.out_).toContain("now the same would be decided:\ndeny: by grant no-mail");
    await broker?.remove();
    const second = await ran({ "calls.why": WHY }, ...words);
    expect([second.status, second.desk.out_]).toEqual([
      0,
      expect.stringContaining(
        "not kept: callgate grants explain send_mail ARGUMENTS --role agent --of one\n",
      ),
    ]);
  });

  it("gives both as one object with --json", async () => {
    const answers = { "calls.why": WHY, "calls.show": KEPT, "grants.explain": NOW };
    const { desk } = await ran(answers, ...words, "--json");
    expect(JSON.parse(desk.out_)).toEqual({ recorded: WHY, now: NOW });
  });

  it("shows counted denials as what they are", async () => {
    const kinds = ["send_mail", "\u001b[2Jevil"].map((tool) => ({
      session: "one",
      first_call: "3",
      count: 12,
      tool,
      verdict: "deny",
      at_ms: NOW_MS,
      denied: "no_grant",
      row: "nothing",
      grant: null,
      condition: "none",
      taint: WHY.taint,
    }));
    const counted = { ...WHY, verdict: "unknown", denied: null, row: "counted", grant: null, counted: kinds };
    const { desk } = await ran({ "calls.why": counted }, ...words);
    expect(desk.out_).toContain("No record names this call.");
    expect(desk.out_).toMatch(/^send_mail +no_grant +no grant \(row nothing\) +12 after call 3 /m);
    expect(desk.out_).not.toMatch(/(?!\n)\p{C}|denied +-/u);
  });

  it.each([
    ["a tool too", ["send_mail"]],
    ["a taint to assume", ["--untrusted"]],
  ])("does not go with %s", async (_, more) => {
    const { status, asked, desk } = await ran({}, ...words, ...more);
    expect([status, asked.asked]).toEqual([2, []]);
    expect(desk.err_).toContain("--call");
  });

  it("says why nothing is told, with the status of a failed call", async () => {
    const none = {
      status: "failed",
      message: "bad_arguments: No record names a decision on that call. Nothing ran.",
    };
    const { status, desk } = await ran({ "calls.why": none }, ...words);
    expect([status, desk.err_]).toEqual([4, expect.stringContaining("No record names")]);
  });

  it("without a call and a tool tells what the policy comes to", async () => {
    const reach = { roles: [], paths: [], more: false };
    const { desk, asked } = await ran({ "grants.explain": reach }, "grants", "explain", "--role", "agent");
    expect(asked.of("grants.explain")).toEqual([{ role: "agent" }]);
    expect(desk.out_).toContain("no role reaches any tool");
  });
});
