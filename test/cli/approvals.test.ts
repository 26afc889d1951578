import { afterEach, describe, expect, it } from "vitest";
import { AnsweringBroker, type Answers, at, Desk, NOW_MS } from "./desk.ts";
import { ID, question, wholeQuestionOf } from "./questions.ts";

// `callgate approvals …` as a person meets it, over a broker that answers what the test wrote down.

let broker: AnsweringBroker;

async function answering(answers: Answers = {}): Promise<void> {
  broker = await AnsweringBroker.start({
    "approvals.list": { approvals: [question()], version: 1 },
    "approvals.show": wholeQuestionOf(),
    "approvals.approve": {
      approval: ID,
      approved: true,
      role: "agent",
      session: "one",
      call: "123456789",
      remembered: null,
    },
    "approvals.refuse": { approval: ID, refused: true, until_ms: NOW_MS + 3_600_000 },
    ...answers,
  });
}

afterEach(() => broker.remove());

async function ran(desk: Desk, ...words: string[]): Promise<number> {
  return at(desk, broker, "approvals", ...words);
}

describe("callgate approvals list", () => {
  it("shows each question on a line, its columns below each other", async () => {
    const other = { approval: "1234567890abcdef", tool: "write_file", uid: 54_321, pid: null };
    await answering({ "approvals.list": { approvals: [question(), question(other)], version: 1 } });
    const desk = new Desk();
    expect(await ran(desk, "list")).toBe(0);
    expect(desk.out_.split("\n")).toEqual([
      "APPROVAL  TOOL        ROLE   SESSION  USER       PID   AGE   TIME LEFT  DESTINATIONS",
      '9f3ac241  send_mail   agent  one      root       4242  30 s  14 min     to="bob@example.org"',
      '12345678  write_file  agent  one      uid 54321  ?     30 s  14 min     to="bob@example.org"',
      "",
    ]);
  });

  it("gives ids as many characters as tell them apart", async () => {
    const twin = `${ID.slice(0, 12)}ffff`;
    await answering({
      "approvals.list": { approvals: [question(), question({ approval: twin })], version: 1 },
    });
    const desk = new Desk();
    await ran(desk, "list");
    expect(desk.out_).toContain(`\n${ID.slice(0, 13)}  `);
    expect(desk.out_).toContain(`\n${twin.slice(0, 13)}  `);
  });

  it("shows what became of questions, and who decided, with --all", async () => {
    const gone = question({
      state: "refused",
      decided_by: { role: "operator", uid: 0 },
      decided_at_ms: NOW_MS,
    });
    await answering({ "approvals.list": { approvals: [gone], version: 1 } });
    const desk = new Desk();
    await ran(desk, "list", "--all");
    expect(desk.out_).toMatch(/ - {2,}refused {2}operator, root \(uid 0\) {2}to=/);
    expect(broker.of("approvals.list")).toEqual([{ state: "all" }]);
  });

  it("shows a large number in a destination as it is, and escapes what an agent wrote", async () => {
    const destinations = { to: "\u202e\u001b[2Jx", account: 9_007_199_254_740_993n };
    const content = JSON.stringify(
      { approvals: [question({ destinations })], version: 1 },
      (_, value: unknown) => (typeof value === "bigint" ? `#${value}#` : value),
    ).replace(/"#(\d+)#"/, "$1");
    await answering({
      "approvals.list": { status: "result", content, class: "public", untrusted: false, truncated: false },
    });
    const desk = new Desk(["x"]);
    await ran(desk, "list");
    expect(desk.out_).toContain('to="\\u{202e}\\u001b[2Jx" account=9007199254740993\n');
  });

  it("says so where nothing waits", async () => {
    await answering({ "approvals.list": { approvals: [], version: 1 } });
    const desk = new Desk();
    await ran(desk, "list");
    expect(desk.out_).toBe("no questions wait for an answer\n");
  });
});

describe("callgate approvals show", () => {
  it("shows who asks, where it goes and all keys before the arguments, which are exact", async () => {
    await answering();
    const desk = new Desk();
    expect(await ran(desk, "show", ID)).toBe(0);
    const lines = desk.out_.split("\n");
    const at = (text: string) => lines.findIndex((line) => line.includes(text));
    expect(lines[0]).toMatch(new RegExp(`^Question ${ID}: waits for an answer, 14 min left, until 2026-`));
    expect(desk.out_).toContain("role agent, root (uid 0), pid 4242\n");
    expect(desk.out_).toContain("session one, call 123456789, ");
    expect(desk.out_).toContain("send_mail (effect: send)\n");
    expect(desk.out_).toContain(
      '  destinations  to = "bob@example.org"\n  arguments     to, subject, n, x\n',
    );
    expect(desk.out_).toContain('      "n": 9007199254740993,\n      "x": 1.0\n');
    expect(at("destinations")).toBeLessThan(at("arguments"));
    expect(at("arguments")).toBeLessThan(at('"subject"'));
    expect(desk.out_).toContain(
      'grant mail-asks: Mail leaves the house.\n                  when args.to != "me@x"\n',
    );
    expect(desk.out_).toContain("internal, untrusted (when asked: public, trusted)\n");
    expect(desk.out_).toContain("raised by agent, session one, call 77\n");
    expect(desk.out_).toContain("--remember tool:      every send_mail of session one\n");
    expect(desk.out_).toContain("d".repeat(64));
  });

  it("says that an equal call may have run already, before anything else of the call", async () => {
    const doubt = { session: "old", call: "5", code: "timeout", ended_at_ms: NOW_MS - 60_000 };
    await answering({ "approvals.show": wholeQuestionOf({ doubt }) });
    const desk = new Desk();
    await ran(desk, "show", ID);
    expect(desk.out_).toMatch(/RUN ALREADY {3}agent, session old, call 5\n/);
    expect(desk.out_).toContain("outcome is unknown (timeout at ");
    expect(desk.out_.indexOf("RUN ALREADY")).toBeLessThan(desk.out_.indexOf("destinations"));
  });

  it("lists what has changed the same store since", async () => {
    const store_changes = [
      { role: "other", session: "s", call: "8", tool: "write_file", at_ms: NOW_MS - 1000 },
    ];
    await answering({ "approvals.show": wholeQuestionOf({ store_changes }) });
    const desk = new Desk();
    await ran(desk, "show", ID);
    expect(desk.out_).toContain("write_file: other, session s, call 8, ");
  });

  it("never folds a destination, marks look-alike letters in it, and folds the rest until --full", async () => {
    const to = `b\u043eb@example.org,${"c@d,".repeat(200)}`;
    const body = `${"x".repeat(400)}SECRET${"x".repeat(400)}`;
    await answering({ "approvals.show": wholeQuestionOf({ arguments: JSON.stringify({ body, to }) }) });
    const desk = new Desk();
    await ran(desk, "show", ID);
    expect(desk.out_).toContain(`to = "${to}"\n`);
    expect(desk.out_).toContain("! not plain letters: \u043e U+043E\n");
    expect(desk.out_).not.toContain("SECRET");
    expect(desk.out_).toContain("566 characters hidden");
    expect(desk.out_).toContain("--full shows all of it");
    const full = new Desk();
    await ran(full, "show", ID, "--full");
    expect(full.out_).toContain("SECRET");
    expect(full.out_).not.toContain("hidden");
  });

  it("lets no argument leave its line or move the cursor", async () => {
    const attack = '\u001b[1A\u001b[2K\n  destinations  to = "me@home"\r\u202e\u2028';
    const args = JSON.stringify({ to: attack, [attack]: attack, body: attack });
    await answering({
      "approvals.show": wholeQuestionOf({
        arguments: args,
        asks: [{ grant: "g", reason: attack, when: attack, remember: true }],
      }),
    });
    const desk = new Desk(["x"]);
    await ran(desk, "show", ID, "--full");
    expect(desk.out_).not.toMatch(/(?!\n)(?:\p{C}|\p{Zl}|\p{Zp})/u);
    expect(desk.out_.match(/^ {2}destinations/gm)).toHaveLength(1);
  });

  it("gives programs the content as it is", async () => {
    await answering();
    const desk = new Desk();
    await ran(desk, "show", ID, "--json");
    expect(JSON.parse(desk.out_)).toEqual(wholeQuestionOf());
  });
});

describe("the id of a question", () => {
  it("may be cut short while it names one", async () => {
    await answering();
    expect(await ran(new Desk(), "show", ID.slice(0, 6))).toBe(0);
    expect(broker.of("approvals.show")).toEqual([{ approval: ID }]);
  });

  it("cut below six characters is wrong use", async () => {
    await answering();
    const desk = new Desk();
    expect(await ran(desk, "refuse", ID.slice(0, 5))).toBe(2);
    expect(desk.err_).toContain("not below 6 characters");
    expect(broker.of("approvals.refuse")).toEqual([]);
  });

  it("that begins two decides nothing and shows both", async () => {
    const twin = `${ID.slice(0, 8)}ffff`;
    await answering({ "approvals.list": { approvals: [question(), question({ approval: twin })] } });
    const desk = new Desk(["yes"]);
    expect(await ran(desk, "approve", ID.slice(0, 8))).toBe(4);
    expect(desk.err_).toContain(ID);
    expect(desk.err_).toContain(twin);
    expect(broker.of("approvals.approve")).toEqual([]);
    expect(await ran(new Desk(), "refuse", twin)).toBe(0);
  });

  it("that begins none is the broker's to judge", async () => {
    const unknown = { status: "failed", message: "bad_arguments: There is no such question. Nothing ran." };
    await answering({ "approvals.refuse": unknown });
    const desk = new Desk();
    expect(await ran(desk, "refuse", "abcdefgh")).toBe(4);
    expect(desk.err_).toContain("There is no such question");
    expect(broker.of("approvals.refuse")).toEqual([{ approval: "abcdefgh" }]);
  });
});

describe("callgate approvals approve", () => {
  it("shows the question, asks, and approves that very digest after a yes", async () => {
    await answering();
    const desk = new Desk(["yes"]);
    expect(await ran(desk, "approve", ID)).toBe(0);
    expect(desk.questions).toEqual([expect.stringContaining("Type yes to approve")]);
    expect(broker.of("approvals.approve")).toEqual([{ approval: ID, digest: "d".repeat(64) }]);
    expect(desk.out_).toContain("approved: role agent, session one, call 123456789 is released\n");
  });

  it("says where it asks that a part is hidden, and not where nothing is", async () => {
    const long = JSON.stringify({ to: "bob@example.org", body: "x".repeat(1000) });
    await answering({ "approvals.show": wholeQuestionOf({ arguments: long }) });
    const [folded, full] = [new Desk(["no"]), new Desk(["no"])];
    await ran(folded, "approve", ID);
    await ran(full, "approve", ID, "--full");
    expect(folded.questions[0]).toContain("Part of the arguments is hidden above; --full shows all.");
    expect(full.questions[0]).not.toContain("hidden");
  });

  it.each([
    ["no", "no"],
    ["an empty line", ""],
    ["y", "y"],
    ["a longer word", "yesterday"],
    ["the end of input, or ctrl-C", undefined],
  ])("decides nothing after %s, and says so", async (_, typed) => {
    await answering();
    const desk = new Desk([typed]);
    expect(await ran(desk, "approve", ID)).toBe(4);
    expect(desk.err_).toContain("nothing was decided: the question still waits\n");
    expect(broker.of("approvals.approve")).toEqual([]);
    expect(broker.of("approvals.refuse")).toEqual([]);
  });

  it("without a terminal wants the digest of what was shown, and shows nothing to nobody", async () => {
    await answering();
    const desk = new Desk();
    expect(await ran(desk, "approve", ID)).toBe(2);
    expect(desk.err_).toContain("--digest");
    expect(broker.asked).toEqual([]);
    expect(await ran(new Desk(), "approve", ID, "--digest", "abc")).toBe(0);
    expect(broker.of("approvals.approve")).toEqual([{ approval: ID, digest: "abc" }]);
  });

  it("with --yes approves exactly what it has shown", async () => {
    await answering();
    const desk = new Desk();
    expect(await ran(desk, "approve", ID, "--yes")).toBe(0);
    expect(desk.out_).toContain("bob@example.org");
    expect(broker.of("approvals.approve")).toEqual([{ approval: ID, digest: "d".repeat(64) }]);
  });

  it("says what the broker says where another was first", async () => {
    const lost = {
      status: "failed",
      message: "conflict: It was already refused by role boss (uid 7). Nothing ran.",
    };
    await answering({ "approvals.approve": lost });
    const desk = new Desk(["yes"]);
    expect(await ran(desk, "approve", ID)).toBe(4);
    expect(desk.err_).toContain("already refused by role boss (uid 7)");
    expect(desk.out_).not.toContain("approved:");
  });

  it("does not ask about a question that no longer waits", async () => {
    await answering({
      "approvals.show": wholeQuestionOf({
        state: "approved",
        decided_by: { role: "boss", uid: 0 },
        decided_at_ms: NOW_MS,
      }),
    });
    const desk = new Desk(["yes"]);
    expect(await ran(desk, "approve", ID)).toBe(4);
    expect(desk.out_).toMatch(/: approved by boss, root \(uid 0\), /);
    expect(desk.questions).toEqual([]);
    expect(broker.of("approvals.approve")).toEqual([]);
  });

  it("remembers for a time and a number of calls, and shows first what that covers", async () => {
    await answering();
    const desk = new Desk(["yes"]);
    const words = ["--remember", "tool", "--for", "1h", "--times", "5"];
    expect(await ran(desk, "approve", ID, ...words)).toBe(0);
    expect(desk.questions[0]).toContain("every send_mail of session one, 5 times, for 1 h.");
    expect(broker.of("approvals.approve")[0]).toMatchObject({
      remember: { what: "tool", seconds: 3600, calls: 5 },
    });
  });

  it.each([
    ["what is remembered but not how long", ["--remember", "tool"]],
    ["a time without anything to remember", ["--for", "1h"]],
    ["a time that is none", ["--remember", "tool", "--for", "soon"]],
    ["a number that is none", ["--remember", "tool", "--for", "1h", "--times", "0"]],
    ["something else to remember", ["--remember", "everything", "--for", "1h"]],
  ])("takes %s as wrong use, before it asks the broker", async (_, words) => {
    await answering();
    expect(await ran(new Desk(["yes"]), "approve", ID, ...words)).toBe(2);
    expect(broker.asked).toEqual([]);
  });

  it("says that the owner forbids remembering, or wants a number, before anybody types", async () => {
    const { remember } = wholeQuestionOf();
    await answering({ "approvals.show": wholeQuestionOf({ remember: { ...remember, allowed: false } }) });
    const desk = new Desk(["yes"]);
    expect(await ran(desk, "approve", ID, "--remember", "tool", "--for", "1h")).toBe(4);
    expect(desk.err_).toContain("can't be remembered");
    expect(desk.questions).toEqual([]);
    await broker.remove();
    await answering({
      "approvals.show": wholeQuestionOf({ remember: { ...remember, number_needed: true } }),
    });
    const other = new Desk(["yes"]);
    expect(await ran(other, "approve", ID, "--remember", "tool", "--for", "1h")).toBe(4);
    expect(other.err_).toContain("--times N");
    expect(broker.of("approvals.approve")).toEqual([]);
  });
});

describe("callgate approvals refuse", () => {
  it("refuses with a reason and says until when equal calls are refused too", async () => {
    await answering();
    const desk = new Desk();
    expect(await ran(desk, "refuse", ID, "--reason", "not today")).toBe(0);
    expect(broker.of("approvals.refuse")).toEqual([{ approval: ID, reason: "not today" }]);
    expect(desk.out_).toMatch(
      /^refused; an equal call of the role is refused without asking until .* \(in 1 h\)\n$/,
    );
  });
});
