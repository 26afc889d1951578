import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Notifier, type NotifierOptions } from "../../src/cli/watch_exec.ts";
import { ID, question } from "./questions.ts";

let place: string;
const at = (name: string) => join(place, name);

/** What a notifier says, to be waited for. */
class Ear {
  readonly lines: string[] = [];
  #waiting: (() => void)[] = [];

  readonly say = (line: string): void => {
    this.lines.push(line);
    for (const wake of this.#waiting.splice(0)) wake();
  };

  async hears(text: string, times = 1): Promise<void> {
    while (this.lines.filter((line) => line.includes(text)).length < times)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

let ear: Ear;
let notifier: Notifier | undefined;

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "callgate-exec-")));
  ear = new Ear();
});

afterEach(async () => {
  await notifier?.close();
  rmSync(place, { recursive: true, force: true });
});

function notifies(command: string, options: Partial<NotifierOptions> = {}): Notifier {
  notifier = new Notifier({ command, on: "asked", socket: "/run/x.sock", say: ear.say, ...options });
  return notifier;
}

const HOSTILE = `$(touch pwned) \`touch pwned\`; touch pwned #'" \n touch pwned\n\u0000\u202e\u001b[2J`;

describe("a notifier", () => {
  it("has what a question says in its environment, and the same line as --json on its input", async () => {
    notifies(`env | grep ^CALLGATE_ | sort > ${at("env")}; cat > ${at("input")}; echo done`).tell(
      "asked",
      question(),
    );
    await ear.hears("done");
    expect(readFileSync(at("env"), "utf8").split("\n")).toEqual([
      `CALLGATE_APPROVAL=${ID}`,
      "CALLGATE_BY=",
      "CALLGATE_CALL=123456789",
      'CALLGATE_DESTINATIONS=to="bob@example.org"',
      "CALLGATE_EFFECT=send",
      "CALLGATE_EVENT=asked",
      expect.stringMatching(/^CALLGATE_EXPIRES=20\d\d-/),
      "CALLGATE_ROLE=agent",
      "CALLGATE_SESSION=one",
      "CALLGATE_SOCKET=/run/x.sock",
      "CALLGATE_TOOL=send_mail",
      "",
    ]);
    const input = readFileSync(at("input"), "utf8");
    expect(JSON.parse(input)).toEqual({ event: "asked", approval: question() });
    expect(input.match(/\n/g)).toHaveLength(1);
  });

  it("runs nothing that a peer wrote, and is shown it escaped", async () => {
    const hostile = question({ session: HOSTILE, tool: HOSTILE, destinations: { to: HOSTILE } });
    notifies(
      `cd ${place}; printf '%s' "$CALLGATE_TOOL" > tool; cat > input; echo "$CALLGATE_SESSION"; echo done`,
    ).tell("asked", hostile);
    await ear.hears("done");
    expect(readdirSync(place).toSorted()).toEqual(["input", "tool"]);
    const tool = readFileSync(at("tool"), "utf8");
    expect(tool).toContain("$(touch pwned)");
    expect(tool).toContain("\\u{202e}\\u{1b}[2J");
    for (const text of [tool, readFileSync(at("input"), "utf8").trimEnd(), ...ear.lines])
      expect(text).not.toMatch(/[\x00-\x1f\u202e]/);
  });

  it("takes half a megabyte of a peer's without a fault", async () => {
    const huge = question({ destinations: { to: "x".repeat(500_000) } });
    notifies(`wc -c | sed 's/^/read /'; echo "env $\{#CALLGATE_DESTINATIONS}"`).tell("asked", huge);
    await ear.hears("read 500");
    await ear.hears("env ");
    const shown = Number(ear.lines.find((line) => line.startsWith("env "))?.slice(4));
    expect(shown).toBeLessThanOrEqual(1100);
  });

  it("need not read what it is given", async () => {
    notifies("exec 0<&-; echo done").tell("asked", question({ destinations: { to: "x".repeat(500_000) } }));
    await ear.hears("done");
  });

  it("that fails is said, and the next one is run all the same", async () => {
    const one = notifies('echo "ran $CALLGATE_TOOL" >&2; exit 3');
    one.tell("asked", question());
    await ear.hears(`it ended with status 3 (asked, ${ID})`);
    one.tell("asked", question({ tool: "pay" }));
    await ear.hears("ran pay");
  });

  it("that takes too long is ended with all that it started", async () => {
    notifies(`(trap '' TERM; echo $$ > ${at("pid")}; while :; do sleep 1; done) & wait`, {
      timeoutMs: 300,
    }).tell("asked", question());
    await ear.hears("it took longer than 0.3 s and was ended");
    expect(ear.lines).toHaveLength(1);
  });

  it("is told of the end only where that is asked for", async () => {
    const ended = question({ state: "refused", decided_by: { role: "boss", uid: 0 } });
    const some = notifies('echo "some $CALLGATE_EVENT"');
    some.tell("refused", ended);
    some.tell("asked", question());
    await ear.hears("some asked");
    await some.close();
    notifies('echo "all $CALLGATE_EVENT by $CALLGATE_BY"', { on: "all" }).tell("refused", ended);
    await ear.hears("all refused by boss, root (uid 0)");
    expect(ear.lines.join()).not.toContain("some refused");
  });

  it("of 1,000 questions at once is run for a bounded number, never more than four together, and hears how many it missed", async () => {
    writeFileSync(at("go"), "");
    const command = `mkdir ${at("slot")}-$$; ls -d ${at("slot")}-* | wc -l >> ${at("together")}; while [ -e ${at("go")} ]; do sleep 0.05; done; rmdir ${at("slot")}-$$; echo "$CALLGATE_EVENT $CALLGATE_MISSED"`;
    const one = notifies(command);
    for (let i = 0; i < 1000; i += 1)
      one.tell("asked", question({ approval: i.toString(16).padStart(32, "0") }));
    rmSync(at("go"));
    await ear.hears("missed 932");
    await ear.hears("asked", 68);
    const together = readFileSync(at("together"), "utf8").trim().split("\n").map(Number);
    expect(Math.max(...together)).toBeLessThanOrEqual(4);
    expect(together).toHaveLength(69);
  });

  it("is not run for a question that has ended before its turn", async () => {
    writeFileSync(at("go"), "");
    const one = notifies(`while [ -e ${at("go")} ]; do sleep 0.05; done; echo "told $CALLGATE_TOOL"`);
    for (const approval of ["a", "b", "c", "d"]) one.tell("asked", question({ approval }));
    one.tell("asked", question({ approval: "late", tool: "late" }));
    one.tell("asked", question({ approval: "last", tool: "last" }));
    one.tell("refused", question({ approval: "late", tool: "late", state: "refused" }));
    rmSync(at("go"));
    await ear.hears("told last");
    expect(ear.lines.join()).not.toContain("told late");
  });

  it("leaves no process when the watch ends", async () => {
    const one = notifies(`echo started; sleep 1000; touch ${at("after")}`);
    one.tell("asked", question());
    await ear.hears("started");
    await one.close();
    expect(existsSync(at("after"))).toBe(false);
    expect(ear.lines).toEqual(["started"]);
  });

  it("that prints much is shown the beginning of it", async () => {
    notifies("seq 1 5000; echo end >&2").tell("asked", question());
    await ear.hears("(it prints more, which is left out)");
    expect(ear.lines.length).toBeLessThan(30);
  });
});
