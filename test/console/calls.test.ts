import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import type { Handler } from "../../src/client/jobs.ts";
import { provide } from "../../src/client/provider.ts";
import { cleanUp, onCleanUp } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { ASKING_CONFIG, ask, type House, openHouse } from "./asking.ts";
import { faultsOf, goTo, NEEDED, openBrowser, openPage } from "./browser.ts";

// Looking calls up on the page, over a real daemon.

const CONFIG = `${ASKING_CONFIG}
[roles.slowly]
anyone = true
[tools.wait]
role = "slowly"
effect = "write"
[[grants]]
id = "waiting-is-free"
role = "agent"
tools = ["wait"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "no-strangers"
role = "agent"
tools = ["send_mail"]
effect = "deny"
when = 'has(args.to) && args.to.startsWith("stranger")'
reason = "Strangers get no mail."
[[grants]]
id = "agent-itself"
role = "agent"
tools = ["callgate.calls.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

vi.setConfig({ testTimeout: 180_000 }); // a browser on a busy machine

let browser: Browser;
let house: House;

async function enter(): Promise<Page> {
  house = await openHouse(CONFIG);
  return openPage(browser, house.server, { at: "calls" });
}

async function search(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  await page.getByRole("button", { name: "Clear" }).click();
  for (const [name, value] of Object.entries(fields)) {
    const field = page.getByLabel(name, { exact: true });
    const isChoice = (await page.locator("select").and(field).count()) > 0;
    if (isChoice) await field.selectOption(value);
    else await field.fill(value);
  }
  await page.getByRole("button", { name: "Search" }).click();
}

/** The tools of the rows, once there are that many. */
async function tools(page: Page, count: number): Promise<readonly string[]> {
  await expect.poll(() => page.locator("tbody tr").count()).toBe(count);
  return page.locator("tbody th").allTextContents();
}

/** A tool that runs for as long as its connection is there; resolves once it has begun. */
async function slowTool(): Promise<{ readonly started: Promise<void> }> {
  let begin = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const wait: Handler = ({ signal }) => {
    begin();
    return new Promise((_, fail) => signal.addEventListener("abort", () => fail(new Error("gone"))));
  };
  const provider = await provide({ to: { path: house.place.socket("slowly") }, tools: { wait } });
  onCleanUp(() => provider.close({ drainMs: 0 }));
  return { started };
}

describeWith(NEEDED, "calls on the page", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterEach(cleanUp);
  afterAll(() => browser?.close());

  it("are found by who asked, what, how it ended, when, and by their id", async () => {
    const page = await enter();
    const first = house.agent.call("read_page", {}, { session: "monday" });
    await first.final;
    await house.agent.call("wait", {}, { session: "tuesday" }).final; // nobody serves it
    await ask(house.agent, "send_mail", { to: "anna@example.org" }, "tuesday");
    await search(page, { Role: "agent" });
    expect(await tools(page, 2)).toEqual(["send_mail", "read_page"]);
    await search(page, { Session: "monday" });
    expect(await tools(page, 1)).toEqual(["read_page"]);
    await search(page, { Tool: "send_mail" });
    expect(await tools(page, 1)).toEqual(["send_mail"]);
    await search(page, { State: "waiting" });
    expect(await tools(page, 1)).toEqual(["send_mail"]);
    await search(page, { Outcome: "result", Role: "agent" });
    expect(await tools(page, 1)).toEqual(["read_page"]);
    await search(page, { "Call id": String(first.call) });
    expect(await tools(page, 1)).toEqual(["read_page"]);
    await search(page, { Until: "2020-01-01T00:00" });
    await page.getByText("No call that is kept fits.").waitFor();
    await search(page, { Since: "2020-01-01T00:00", Role: "agent" });
    expect(await tools(page, 2)).toEqual(["send_mail", "read_page"]);
    expect(faultsOf(page)).toEqual([]);
  });

  it("show what was asked, what came of it, and what labels it brought", async () => {
    const page = await enter();
    const { call } = house.agent.call("read_page", { of: "tomorrow" }, { session: "monday" });
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.locator("tr", { hasText: "read_page" }).getByRole("button").click();
    await page.getByText("words of a stranger").waitFor();
    const shown = (await page.locator(".split-view").textContent()) ?? "";
    expect(shown).toContain('"of": "tomorrow"');
    expect(shown).toContain("confidentialuntrusted");
    expect(page.url()).toContain(`#/calls/agent/monday/${call}`);
    await page.keyboard.press("Escape");
    await page.locator(".split-view").waitFor({ state: "detached" });
  });

  it("say by which grant and row one was denied, though a denied call is not kept", async () => {
    const page = await enter();
    const denied = house.agent.call("send_mail", { to: "stranger@example.org" }, { session: "one" });
    expect(await denied.final).toMatchObject({ status: "denied", reason: "denied_by_grant" });
    await goTo(page, `calls/agent/one/${denied.call}`);
    await page.getByRole("heading", { name: "Why it was denied" }).waitFor();
    const shown = (await page.locator(".split-view").textContent()) ?? "";
    expect(shown).toContain("denied: denied_by_grant");
    expect(shown).toContain("a grant denies it (deny)");
    expect(shown).toContain("no-strangers");
    expect(shown).toContain("Strangers get no mail.");
  });

  it("are cancelled while they run, in two acts", async () => {
    const page = await enter();
    const slow = await slowTool();
    const running = house.agent.call("wait", {}, { session: "one" });
    await slow.started;
    await search(page, { State: "running", Tool: "wait" });
    await page.locator("tbody tr").getByRole("button").click();
    await page.getByRole("button", { name: "Cancel this call" }).click();
    await page.getByRole("button", { name: "Let it go on" }).click();
    await page.getByRole("button", { name: "Cancel this call" }).click();
    await page.getByRole("button", { name: "Cancel the call" }).click();
    expect(await running.final).toMatchObject({ status: "failed" });
    await page.getByText("Cancelled.", { exact: true }).waitFor();
    await page.getByText("failed: cancelled").first().waitFor();
  });

  it("come page by page, none twice and none left out", async () => {
    const page = await enter();
    const count = 260;
    await Promise.all(
      Array.from(
        { length: count },
        (_, i) => house.agent.call("read_page", { i }, { session: `s${i % 3}` }).final,
      ),
    );
    await search(page, { Tool: "read_page" });
    const older = page.getByRole("button", { name: "Older calls" });
    await page.locator("tbody tr").first().waitFor();
    while (await older.isVisible()) {
      const before = await page.locator("tbody tr").count();
      await older.click();
      await expect.poll(() => page.locator("tbody tr").count()).toBeGreaterThan(before);
      await expect
        .poll(async () => (await older.isVisible()) === false || (await older.isEnabled()))
        .toBe(true);
    }
    await page.getByText(`${count} calls, no older ones are kept`).waitFor();
    const ids = await page.locator("td[data-head=Call]").allTextContents();
    expect(new Set(ids).size).toBe(count);
  });
});
