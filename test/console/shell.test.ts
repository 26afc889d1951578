import { writeFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { cleanUp, Daemon, run } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { ASKING_CONFIG, ask, type House, openHouse } from "./asking.ts";
import {
  ConsoleServer,
  faultsOf,
  NEEDED,
  openBrowser,
  openPage,
  seriousFindings,
  strangersPage,
} from "./browser.ts";

// The frame around the pages: how one gets in and out, and what it says when something is wrong.

vi.setConfig({ testTimeout: 180_000 }); // a browser on a busy machine

let browser: Browser;
let house: House;

async function enter(look: Parameters<typeof openPage>[2] = {}): Promise<Page> {
  house = await openHouse();
  return openPage(browser, house.server, look);
}

/** The operator's command line, to its end. */
async function operator(...words: readonly string[]): Promise<void> {
  const { status, err } = await run([...words, "--socket", house.place.socket("deputy")]);
  if (status !== 0) throw new Error(err);
}

describeWith(NEEDED, "the console's shell", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterEach(cleanUp);
  afterAll(() => browser?.close());

  it("logs in by a link once, which leaves the address and the history at once", async () => {
    house = await openHouse();
    const link = await house.server.link();
    const page = await strangersPage(browser);
    await page.goto(link);
    await page.locator(".nav").waitFor();
    expect(page.url()).not.toContain("login");
    await page.reload();
    await page.locator(".nav").waitFor();
    await page.getByRole("link", { name: "Load" }).click();
    await page.goBack();
    expect(page.url()).not.toContain("login");
    expect(faultsOf(page)).toEqual([]);

    const second = await strangersPage(browser);
    await second.goto(link);
    await second.getByRole("alert").waitFor();
    await second.getByText("callgate console --socket").waitFor();
    expect(await second.locator(".nav").count()).toBe(0);
    expect(await seriousFindings(second)).toEqual([]);
  });

  it("logs in where a new link is pasted into a page that is open already", async () => {
    house = await openHouse();
    const page = await strangersPage(browser);
    await page.goto(`${house.server.origin}/`);
    await page.getByText("You are not logged in").waitFor();
    const { hash } = new URL(await house.server.link());
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator(".nav").waitFor();
    expect(page.url()).not.toContain("login");
  });

  it("ends the log-in on request, for every page of that browser", async () => {
    const page = await enter();
    const other = await page.context().newPage();
    await other.goto(`${house.server.origin}/`);
    await other.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByText("You are not logged in").waitFor();
    await other.getByText("You are not logged in").waitFor();
    await page.reload();
    await page.getByText("You are not logged in").waitFor();
  });

  it("has a page for each word of its navigation, and a number key for each", async () => {
    const page = await enter();
    const names = ["Questions", "Calls", "Sessions", "Grants", "Policy", "Audit", "Load"];
    expect((await page.locator(".nav a").allTextContents()).map((text) => text.trim())).toEqual(names);
    for (const [i, name] of names.entries()) {
      await page.keyboard.press(String(i + 1));
      await page.getByRole("heading", { level: 1, name }).waitFor();
      expect(await page.locator(".nav a[aria-current=page]").textContent()).toBe(name);
      expect(await page.title()).toBe(`${name} · callgate`);
    }
    expect(faultsOf(page)).toEqual([]);
  });

  it("shows its keys on `?`, gives the focus back, and skips to the content", async () => {
    const page = await enter();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog", { name: "Keys" });
    await dialog.waitFor();
    await page.keyboard.press("2"); // not while something is open above the page
    await page.getByRole("heading", { level: 1, name: "Questions" }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
  });

  it("leaves keys alone while somebody types", async () => {
    const page = await enter();
    await ask(house.agent, "send_mail", { to: "anna@example.org" });
    await page.locator("tbody tr").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("j2?a");
    expect(await page.getByLabel("Filter").inputValue()).toBe("j2?a");
    await page.getByText("None of the 1 question that are shown fits.").waitFor();
  });

  it("says when the broker is lost and when it is back", async () => {
    const page = await enter();
    await page.getByText("Live", { exact: true }).waitFor();
    await house.daemon.kill();
    await page.getByText("The broker is lost.").waitFor();
    await page.getByText("Broker lost").waitFor();
    await Daemon.start(house.place);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("The broker is lost.").waitFor({ state: "detached" });
  });

  it("says when the console itself is gone, and asks for a new log-in once another one runs there", async () => {
    const page = await enter();
    await page.getByText("Live", { exact: true }).waitFor();
    const { port } = house.server;
    await house.server.stop();
    await page.getByText("The console does not answer.").waitFor();
    await ConsoleServer.start(house.place.socket("boss"), "--port", port);
    await page.getByText("This log-in has ended.").waitFor();
    await page.getByText("You are not logged in").waitFor();
  });

  it("says loudly that one user is on both sides, that a policy was refused, and that a role is frozen", async () => {
    const page = await enter();
    await page.getByText("allow_same_user: one user may").waitFor();
    writeFileSync(house.place.config, `${ASKING_CONFIG}\n[tools.more]\nrole = "nobody"\n`);
    house.daemon.signal("SIGHUP");
    await page.getByText("The policy in force is older than its file.").waitFor();
    writeFileSync(house.place.config, ASKING_CONFIG);
    house.daemon.signal("SIGHUP");
    await page.getByText("The policy in force is older than its file.").waitFor({ state: "detached" });
    await operator("freeze", "agent");
    await page.getByText("A role is frozen:").waitFor();
    expect(await page.locator(".banners").textContent()).toContain("agent");
    expect(await seriousFindings(page)).toEqual([]);
  });

  it("counts what waits in its title and beside its page's name", async () => {
    const page = await enter({ at: "load" });
    for (const to of ["anna@example.org", "bob@example.org"]) await ask(house.agent, "send_mail", { to });
    await page.locator(".nav .count", { hasText: "2" }).waitFor();
    expect(await page.title()).toBe("(2) Load · callgate");
  });
});
