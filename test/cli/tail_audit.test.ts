import { afterEach, describe, expect, it } from "vitest";
import { AnsweringBroker, at, Desk, NOW_MS } from "./desk.ts";

/** A broker's audit as `audit.export` tells it. */
class Audit {
  #records: Readonly<Record<string, unknown>>[] = [];
  pageMax = 1000;

  add(...records: Readonly<Record<string, unknown>>[]): void {
    for (const record of records)
      this.#records.push({
        seq: String(this.#records.length + 1),
        at_ms: NOW_MS + this.#records.length,
        ...record,
      });
  }

  clear(): void {
    this.#records = [];
  }

  page(args: Readonly<Record<string, unknown>>): object {
    const { role, session, tool, decision, call, since_ms: since = 0 } = args;
    const wanted = { role, session, tool, decision, call };
    const fits = this.#records.filter(
      (record) =>
        Object.entries(wanted).every(([name, value]) => value === undefined || record[name] === value) &&
        Number(record["at_ms"]) >= Number(since),
    );
    const inOrder = args["backward"] === true ? fits.toReversed() : fits;
    const [from, before] = [BigInt(String(args["from_seq"] ?? 0)), args["before_seq"]];
    const rest = inOrder.filter(
      ({ seq }) =>
        BigInt(String(seq)) >= from && (before === undefined || BigInt(String(seq)) < BigInt(String(before))),
    );
    const limit = Math.min(Number(args["limit"]), this.pageMax);
    const lines = rest.slice(0, limit).map((record) => JSON.stringify({ hash: "0".repeat(64), record }));
    const next = args["backward"] === true ? rest[limit - 1]?.["seq"] : rest[limit]?.["seq"];
    return { lines, next_seq: rest.length > limit ? next : null };
  }
}

let broker: AnsweringBroker;
afterEach(() => broker.remove());

async function tailing(audit: Audit, ...words: string[]) {
  broker = await AnsweringBroker.start({
    "audit.export": (args) => audit.page(args),
    status: { role: "boss", draining: false },
  });
  const desk = new Desk();
  return { desk, ended: at(desk, broker, "tail", "--audit", ...words) };
}

const CALL = { role: "agent", session: "one", call: "7", tool: "read_file" } as const;
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => ({
    kind: "decision",
    ...CALL,
    call: String(from + i),
    decision: "allow",
    grant: "g",
  }));
const calls = ({ out_ }: Desk) => [...out_.matchAll(/ call=(\d+)/g)].map(([, call]) => Number(call));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe("callgate tail --audit", () => {
  it("shows the last records, then those that come, each once and in order, until ctrl-C", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 25));
    const { desk, ended } = await tailing(audit);
    await desk.shows("call=25");
    audit.add(...numbered(26, 28));
    await desk.shows("call=28");
    audit.add(...numbered(29, 29));
    await desk.shows("call=29");
    desk.interrupt();
    expect(await ended).toBe(0);
    expect(calls(desk)).toEqual(range(16, 29));
    expect(desk.err_).toBe("");
  });

  it("tells who, what, by which rule, and how long a call took from its dispatch", async () => {
    const audit = new Audit();
    audit.add(
      {
        kind: "dispatch",
        ...CALL,
        decision: "allow",
        row: "allow",
        grant: "g1",
        taint: { class: "public", untrusted: false },
      },
      {
        kind: "outcome",
        ...CALL,
        at_ms: NOW_MS + 250,
        status: "result",
        class: "internal",
        untrusted: true,
        message_hmac: "f".repeat(64),
      },
      { kind: "decision", ...CALL, call: "8", decision: "deny", denied: "no_grant", row: "nothing" },
      {
        kind: "approval",
        ...CALL,
        call: "9",
        approval: "a".repeat(32),
        state: "approved",
        by: { role: "boss", uid: 0 },
      },
      {
        kind: "taint",
        of: "session",
        role: "agent",
        session: "one",
        class: "internal",
        untrusted: true,
        raised_by: { role: "agent", session: "one", call: "7" },
      },
    );
    const { desk, ended } = await tailing(audit);
    await desk.shows("raised_by");
    desk.interrupt();
    await ended;
    expect(
      desk.out_
        .trimEnd()
        .split("\n")
        .map((line) => line.slice("00:00:00.000 ".length)),
    ).toEqual([
      "dispatch  agent/one  read_file  allow  g1 (allow)  call=7 taint=public,trusted",
      "outcome   agent/one  read_file  result              250 ms  call=7 labels=internal,untrusted",
      "decision  agent/one  read_file  deny no_grant  (nothing)  call=8",
      `approval  agent/one  read_file  approved  call=9 approval=${"a".repeat(32)} by=boss,uid 0`,
      "taint     agent/one             internal,untrusted  of=session raised_by=agent/one/7 labels=internal,untrusted",
    ]);
  });

  it("pages through all since a time", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 50));
    audit.pageMax = 7;
    const { desk, ended } = await tailing(audit, "--since", new Date(NOW_MS + 10).toISOString());
    await desk.shows("call=50");
    desk.interrupt();
    await ended;
    expect(calls(desk)).toEqual(range(11, 50));
  });

  it("pages back to as many records that fit as one wants, and no further", async () => {
    const audit = new Audit();
    audit.add(
      ...numbered(1, 40).map((record, i) => ({ ...record, kind: i % 10 === 0 ? "outcome" : "decision" })),
    );
    audit.pageMax = 3;
    const { desk, ended } = await tailing(audit, "--last", "2", "--event", "outcome");
    await desk.shows("call=31");
    desk.interrupt();
    await ended;
    expect(calls(desk)).toEqual([21, 31]);
  });

  it("lets the broker choose by what it can choose by", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 3), { kind: "decision", ...CALL, role: "other", call: "4", decision: "deny" });
    const { desk, ended } = await tailing(
      audit,
      ...["--role", "other", "--of", "one", "--tool", "read_file", "--decision", "deny", "--call", "4"],
    );
    await desk.shows("call=4");
    desk.interrupt();
    await ended;
    expect(calls(desk)).toEqual([4]);
    expect(broker.of("audit.export")).toContainEqual(
      expect.objectContaining({
        role: "other",
        session: "one",
        tool: "read_file",
        decision: "deny",
        call: "4",
        backward: true,
      }),
    );
  });

  it("asks for no records where nothing new is there, also where what is new does not fit", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 3));
    const { desk, ended } = await tailing(audit, "--role", "nobody");
    const forward = () => broker.of("audit.export").filter((args) => args["backward"] !== true);
    const heads = () => broker.of("audit.export").filter((args) => args["limit"] === 1).length;
    const turns = async (count: number) => {
      const until = heads() + count;
      while (heads() < until) await new Promise((turn) => setImmediate(turn));
    };
    await turns(2);
    audit.add(...numbered(4, 5));
    await turns(3);
    expect(forward()).toEqual([expect.objectContaining({ from_seq: "4" })]);
    desk.interrupt();
    await ended;
  });

  it("does not show that it looks on itself, but that others do", async () => {
    const audit = new Audit();
    const read = { kind: "decision", tool: "callgate.audit.export", decision: "allow", call: "1" };
    audit.add(
      { ...read, role: "boss", session: "cli" },
      { ...read, role: "boss", session: "other" },
      { ...read, role: "eve", session: "cli" },
    );
    const { desk, ended } = await tailing(audit);
    await desk.shows("eve/cli");
    desk.interrupt();
    await ended;
    expect(desk.out_).toContain("boss/other");
    expect(desk.out_).not.toContain("boss/cli");
  });

  it("goes on after a restart of the broker, and says that it was away", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 2));
    const { desk, ended } = await tailing(audit);
    await desk.shows("call=2");
    await broker.restart();
    audit.add(...numbered(3, 4));
    await desk.shows("call=4");
    desk.interrupt();
    expect(await ended).toBe(0);
    expect(calls(desk)).toEqual([1, 2, 3, 4]);
    expect(desk.err_).toContain("the broker is back\n");
  });

  it("says where another audit has taken the place, and follows that", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 5));
    const { desk, ended } = await tailing(audit);
    await desk.shows("call=5");
    audit.clear();
    audit.add(...numbered(101, 102));
    await desk.shows("call=102");
    desk.interrupt();
    await ended;
    expect(desk.err_).toContain("the audit is another one now");
    expect(calls(desk)).toEqual([1, 2, 3, 4, 5, 101, 102]);
  });

  it("waits for a broker that can't answer now", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 1));
    let asked = 0;
    broker = await AnsweringBroker.start({
      "audit.export": (args) => {
        asked += 1;
        return asked === 1
          ? { status: "failed", message: "unavailable: the store is full. Nothing ran." }
          : audit.page(args);
      },
    });
    const desk = new Desk();
    const ended = at(desk, broker, "tail", "--audit");
    await desk.shows("call=1");
    desk.interrupt();
    expect(await ended).toBe(0);
  });

  it("gives programs the lines of the export as they are", async () => {
    const audit = new Audit();
    audit.add(...numbered(1, 2));
    const { desk, ended } = await tailing(audit, "--json");
    await desk.shows('"call":"2"');
    desk.interrupt();
    await ended;
    const { lines } = audit.page({ limit: 9 }) as { lines: string[] };
    expect(desk.out_).toBe(`${lines.join("\n")}\n`);
  });

  it("ends with the status of a denial where the role may not", async () => {
    broker = await AnsweringBroker.start({});
    const desk = new Desk();
    expect(await at(desk, broker, "tail", "--audit")).toBe(3);
    expect(desk.err_).toMatch(
      /^denied: no_grant\n {2}This socket's role .* callgate\.audit\.export\. .*--socket/,
    );
  });
});
