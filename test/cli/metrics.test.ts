import { mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { measured } from "../roles/metrics/statuses.ts";
import { AnsweringBroker, type Answers, at, Desk, NOW_MS } from "./desk.ts";

// `callgate metrics` against a broker that answers what the test wrote down.

describe("callgate metrics", () => {
  let broker: AnsweringBroker | undefined;
  let directory = "";

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "callgate-metrics-"));
  });

  afterEach(async () => {
    await broker?.remove();
    broker = undefined;
    rmSync(directory, { recursive: true, force: true });
  });

  async function answering(answers: Answers = { status: measured() }): Promise<AnsweringBroker> {
    broker = await AnsweringBroker.start(answers);
    return broker;
  }

  const file = () => join(directory, "callgate.prom");
  const written = () => readFileSync(file(), "utf8");

  /** Resolves when the file holds that text. It is replaced, so its directory is watched. */
  async function holds(text: string): Promise<void> {
    const has = () => {
      try {
        return written().includes(text);
      } catch {
        return false;
      }
    };
    if (has()) return;
    await new Promise<void>((resolve) => {
      const watcher = watch(directory, () => {
        if (!has()) return;
        watcher.close();
        resolve();
      });
      if (has()) {
        watcher.close();
        resolve();
      }
    });
  }

  it("prints the figures once", async () => {
    const desk = new Desk();
    expect(await at(desk, await answering(), "metrics")).toBe(0);
    expect(desk.out_).toContain("\ncallgate_up 1\n");
    expect(desk.out_).toContain(`callgate_taken_time_seconds ${NOW_MS / 1000}\n`);
    expect(desk.err_).toBe("");
    expect(broker?.of("status")).toEqual([{ metrics: true }]);
  });

  it("prints them as the broker tells them with --json", async () => {
    const desk = new Desk();
    expect(await at(desk, await answering(), "metrics", "--json")).toBe(0);
    expect(JSON.parse(desk.out_)).toEqual(JSON.parse(JSON.stringify(measured())));
  });

  it("replaces a file as a whole, and leaves nothing else behind", async () => {
    writeFileSync(file(), "old and much longer than what comes now\n".repeat(1000));
    expect(await at(new Desk(), await answering(), "metrics", "--to", file())).toBe(0);
    expect(written()).toContain("callgate_up 1\n");
    expect(written()).not.toContain("old and");
    expect(readdirSync(directory)).toEqual(["callgate.prom"]);
  });

  it("says that a broker is not there, with status 1, and so does the file", async () => {
    const desk = new Desk();
    const status = await runProgram(
      ["metrics", "--to", file(), "--socket", join(directory, "none.sock")],
      desk,
    );
    expect(status).toBe(1);
    expect(desk.err_).toContain("no connection to the broker");
    expect(written()).toContain("callgate_up 0\n");
    expect(written()).not.toContain("callgate_calls");
  });

  it("hands on that the role may not, and leaves no old figures", async () => {
    writeFileSync(file(), "callgate_up 1\n");
    expect(await at(new Desk(), await answering({}), "metrics", "--to", file())).toBe(3);
    expect(written()).toContain("callgate_up 0\n");
    const refused = {
      status: { status: "failed", message: "bad_arguments: `metrics` is for roles that are operators." },
    };
    await broker?.remove();
    const desk = new Desk();
    expect(await at(desk, await answering(refused), "metrics")).toBe(4);
    expect(desk.err_).toContain("operators");
  });

  it("says so where the broker tells no figures", async () => {
    const { metrics: _, ...older } = measured();
    const desk = new Desk();
    expect(await at(desk, await answering({ status: older }), "metrics")).toBe(4);
    expect(desk.err_).toContain("older");
  });

  it("says what is wrong with a file that can't be written, and does not go on with it", async () => {
    const desk = new Desk();
    const nowhere = join(directory, "no", "such.prom");
    expect(await at(desk, await answering(), "metrics", "--to", nowhere, "--every", "1s")).toBe(4);
    expect(desk.err_).toContain("can't be written: ENOENT");
    const onDirectory = new Desk();
    expect(await at(onDirectory, broker ?? (await answering()), "metrics", "--to", directory)).toBe(4);
    expect(onDirectory.err_).toContain("can't be written");
    expect(readdirSync(directory)).toEqual([]);
  });

  it.each(["0", "-1", "1x", "", "99999999999999"])("takes no --every of %j", async (every) => {
    const desk = new Desk();
    expect(await at(desk, await answering(), "metrics", "--every", every)).toBe(2);
  });

  it("goes on with --every: a broker that goes and comes back shows as 0 and 1; ctrl-C ends it", async () => {
    let asked = 0;
    const up = await answering({
      status: () => {
        asked += 1;
        return measured({ audit: { seq: String(asked) } });
      },
    });
    const desk = new Desk();
    const running = at(desk, up, "metrics", "--to", file(), "--every", "1s");
    await holds("callgate_audit_records_total 1\n");
    await holds("callgate_audit_records_total 2\n");
    await up.remove();
    await holds("callgate_up 0\n");
    expect(desk.err_).toContain("callgate: ");
    desk.interrupt();
    expect(await running).toBe(0);
  });

  it("ends with --every where the role may not: nothing would ever come", async () => {
    expect(await at(new Desk(), await answering({}), "metrics", "--every", "1s")).toBe(3);
  });
});
