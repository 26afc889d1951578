import { afterEach, describe, expect, it } from "vitest";
import { OUTAGE_MS } from "../../../../src/roles/mcp/serve/broker_side.ts";
import { PROGRESS_MS } from "../../../../src/roles/mcp/serve/progress_reports.ts";
import { QUICK_MS } from "../../../../src/roles/mcp/serve/tool_call.ts";
import { cleanUp } from "../../../daemon/daemon.ts";
import { configOf, grant, HOLD_MS, ManualTime, newClient, oldClient, Scene, textOf } from "./rig.ts";

afterEach(cleanUp);

describe("a person who is asked", () => {
  it("who takes ten minutes is waited for by a client of 2026-07-28 with sixty seconds of patience", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = await (await scene.front({ effects: time.effects })).client(newClient());
    let isOver = false;
    const call = client.callTool({ name: "write", arguments: {} }, { timeout: 60_000 }).finally(() => {
      isOver = true;
    });
    await scene.question();
    for (let waitedMs = 0; waitedMs < 550_000; waitedMs += HOLD_MS) await time.passed(HOLD_MS);
    time.pass(50_000);
    expect(isOver).toBe(false);
    await scene.decide("approve");
    expect(textOf(await call)).toBe("written");
    expect(scene.served.jobs.length).toBe(1);
  });

  it("is told of to the client's user where the client can ask, who waits or calls it off", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = newClient({ capabilities: { elicitation: { form: {} } } });
    const asked: string[] = [];
    let said: "accept" | "decline" = "accept";
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      asked.push(params.message);
      if (said === "accept") await scene.decide("approve");
      return { action: said, ...(said === "accept" ? { content: {} } : {}) };
    });
    await (await scene.front({ effects: time.effects })).client(client);
    const call = client.callTool({ name: "write", arguments: { a: 1 } });
    await scene.question();
    await time.passed(QUICK_MS);
    expect(textOf(await call)).toBe("written");
    expect(asked.length).toBe(1);
    expect(asked[0]).toMatch(
      /^The call of write waits for a person's approval \(\S+, until \S+\)\. Approve or refuse/,
    );
    said = "decline";
    const other = client.callTool({ name: "write", arguments: { a: 2 } });
    await scene.question();
    await time.passed(QUICK_MS);
    const answer = await other;
    expect(answer.isError).toBe(true);
    expect(textOf(answer)).toMatch(/^`write` failed: cancelled: /);
    expect(scene.served.jobs.length).toBe(1);
  });

  it("is asked on where the client's user closes the form, and the next equal call hears the answer", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = newClient({ capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler("elicitation/create", async () => ({ action: "cancel" }));
    await (await scene.front({ effects: time.effects })).client(client);
    const write = { name: "write", arguments: { a: 1 } };
    const closed = client.callTool(write);
    await scene.question();
    await time.passed(QUICK_MS);
    await time.passed(HOLD_MS);
    const told = await closed;
    expect(told.isError).toBe(true);
    expect(textOf(told)).toMatch(
      /^`write` waits for a person's approval .* neither a failure nor a refusal/s,
    );
    const again = client.callTool(write);
    await scene.decide("approve");
    expect(textOf(await again)).toBe("written");
    expect(scene.served.jobs.length).toBe(1);
  });

  it("is shown to a client's user once, who chose to wait", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = newClient({ capabilities: { elicitation: { form: {} } } });
    let shown = 0;
    client.setRequestHandler("elicitation/create", async () => {
      shown += 1;
      return { action: "accept", content: {} };
    });
    await (await scene.front({ effects: time.effects })).client(client);
    const call = client.callTool({ name: "write", arguments: { a: 1 } });
    await scene.question();
    await time.passed(QUICK_MS);
    for (let round = 0; round < 5; round += 1) await time.passed(HOLD_MS);
    await scene.decide("approve");
    expect(textOf(await call)).toBe("written");
    expect(shown).toBe(1);
  });

  it("is waited for by an older client that hears of progress", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = await (await scene.front({ effects: time.effects })).client(oldClient());
    const heard: string[] = [];
    let more = () => {};
    const call = client.callTool(
      { name: "write", arguments: {} },
      {
        onprogress: ({ progress, message }) => {
          heard.push(`${progress} ${message}`);
          more();
        },
        resetTimeoutOnProgress: true,
        timeout: 60_000,
      },
    );
    await scene.question();
    for (let i = 1; i <= 120; i += 1) {
      const came = new Promise<void>((resolve) => (more = resolve));
      if (heard.length <= i) {
        await time.passed(PROGRESS_MS);
        await came;
      }
    }
    await scene.decide("approve");
    expect(textOf(await call)).toBe("written");
    expect(heard[0]).toMatch(/^0\.001 It waits for a person's approval \(/);
    expect(heard.length).toBeGreaterThan(100);
  });

  it("is not asked twice by an older client without progress, which is told to ask again", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = await (await scene.front({ effects: time.effects })).client(oldClient());
    for (let round = 0; round < 3; round += 1) {
      const call = client.callTool({ name: "write", arguments: { a: 1 } });
      await scene.question();
      await time.passed(HOLD_MS);
      const waits = await call;
      expect(waits.isError).toBe(true);
      expect(textOf(waits)).toMatch(/^`write` waits for a person's approval .* exactly the same arguments/);
    }
    await scene.decide("approve");
    expect(textOf(await client.callTool({ name: "write", arguments: { a: 1 } }))).toBe("written");
    expect(scene.served.jobs.length).toBe(1);
    expect((await scene.calls()).filter(({ tool }) => tool === "write").length).toBe(1);
  });

  it("who refuses, and one who does not come, are two different answers", async () => {
    const scene = await Scene.open(
      configOf(grant("writes", "ask", "write", 'approval_ttl = "1s"\nremember = false')),
    );
    const client = await (await scene.front()).client(oldClient());
    const late = client.callTool({ name: "write", arguments: { a: 1 } });
    expect(textOf(await late)).toMatch(/\(approval_expired\)\. Nothing ran\. .* That is no refusal/);
    const refused = client.callTool({ name: "write", arguments: { a: 2 } });
    await scene.decide("refuse");
    expect(textOf(await refused)).toMatch(
      /\(approval_refused\)\. Nothing ran\. A person looked at this call and refused it/,
    );
  });

  it("a refusal that no person gave to this very call is not told as one", async () => {
    const scene = await Scene.open();
    const client = await (await scene.front()).client(oldClient());
    const write = (a: number) => client.callTool({ name: "write", arguments: { a } });
    for (let a = 1; a <= 5; a += 1) {
      const refused = write(a);
      await scene.decide("refuse");
      await refused;
      if (a === 1)
        expect(textOf(await write(1))).toMatch(/has refused the same call before, so nobody was asked/);
    }
    expect(textOf(await write(6))).toMatch(
      /\(approval_refused\)\. Nothing ran\. .* so many calls of late that nobody/,
    );
  });
});

describe("a broker that dies", () => {
  it("is waited for, and after its return the call is the same one, run once", async () => {
    const scene = await Scene.open();
    scene.served.answer = async () => "written";
    const time = new ManualTime();
    const client = await (await scene.front({ effects: time.effects })).client(oldClient());
    const call = client.callTool({ name: "write", arguments: { a: 1 } });
    await scene.question();
    await scene.die();
    await time.passed(OUTAGE_MS);
    expect(textOf(await call)).toMatch(/^`write` has no answer yet: callgate's broker can't be reached now/);
    const other = await client.callTool({ name: "write", arguments: { a: 2 } });
    expect(textOf(other)).toMatch(
      /^`write` was not asked for: callgate's broker can't be reached now\. Nothing ran\./,
    );
    await expect(client.listTools()).rejects.toThrow(/can't be reached now/);
    await scene.reopen();
    const passing = setInterval(() => time.pass(1000), 20); // the front tries again by its own clock
    try {
      await scene.decide("approve");
      await scene.served.came(1);
    } finally {
      clearInterval(passing);
    }
    expect(textOf(await client.callTool({ name: "write", arguments: { a: 1 } }))).toBe("written");
    expect(scene.served.jobs.length).toBe(1);
  });

  it("says what is missing where the role may not list its tools", async () => {
    const scene = await Scene.open(configOf().replaceAll("callgate.tools.list", "callgate.status"));
    const client = await (await scene.front()).client(oldClient());
    await expect(client.listTools()).rejects.toThrow(
      "The tools can't be listed: the broker does not tell this role its tools (denied: no_grant): it needs a grant for callgate.tools.list.",
    );
  });
});
