import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { cleanUp, Daemon, run } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { ask, type House, openHouse } from "./asking.ts";
import { ConsoleServer, faultsOf, NEEDED, openBrowser, openPage } from "./browser.ts";

// Questions as a person meets them on the page, over a real daemon.

vi.setConfig({ testTimeout: 180_000 }); // a browser on a busy machine

let browser: Browser;
let house: House;

async function enter(look: Parameters<typeof openPage>[2] = {}): Promise<Page> {
  house = await openHouse();
  return openPage(browser, house.server, look);
}

/** Opens the one question whose row says that. */
async function open(page: Page, text: string): Promise<void> {
  await page.locator("tr", { hasText: text }).getByRole("button").first().click();
  await page.locator(".answer").waitFor();
}

async function approve(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await page.getByRole("button", { name: "Yes, approve" }).click();
}

const mail = (to: string, text = "Hello") => ({ to, text });

describeWith(NEEDED, "questions on the page", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterEach(async () => {
    await cleanUp();
  });
  afterAll(() => browser?.close());

  it("appear by themselves, and approving one gives the waiting command its result", async () => {
    const page = await enter();
    await page.getByText("No question waits").waitFor();
    const socket = house.place.socket("agent");
    const waiting = run(["call", "send_mail", '{"to":"anna@example.org"}', "--socket", socket]);
    await page.getByText("anna@example.org").waitFor();
    expect(await page.title()).toBe("(1) Questions · callgate");
    await open(page, "anna@example.org");
    await approve(page);
    expect(await waiting).toMatchObject({ status: 0, out: "done" });
    await page.getByText(/^Approved by boss \(uid \d+\), .*Nothing can be answered here any more/).waitFor();
    expect(await page.locator(".answer").count()).toBe(0);
    expect(faultsOf(page)).toEqual([]);
  });

  it("are refused with a reason that the caller does not hear", async () => {
    const page = await enter();
    const call = await ask(house.agent, "send_mail", mail("anna@example.org"));
    await open(page, "anna@example.org");
    await page.getByRole("button", { name: "Refuse", exact: true }).click();
    await page.getByLabel("Reason (optional)").fill("not on a Sunday");
    await page.keyboard.press("Enter");
    expect(await call.final).toEqual({ status: "denied", reason: "approval_refused" });
    await page.getByText(/^Refused by boss/).waitFor();
    await page.getByText("No longer waiting").waitFor();
    expect(house.ran).toEqual([]);
  });

  it("expire on the screen: the buttons go, and nothing runs", async () => {
    const page = await enter();
    const call = await ask(house.agent, "hurry", {});
    await open(page, "hurry");
    await page.getByText(/^Expired: nobody answered in time/).waitFor();
    expect(await page.getByRole("button", { name: "Approve", exact: true }).count()).toBe(0);
    expect(await call.final).toEqual({ status: "denied", reason: "approval_expired" });
    expect(house.ran).toEqual([]);
  });

  it("are decided once where two people answer at the same time, and the other sees who it was", async () => {
    const boss = await enter();
    const other = await ConsoleServer.start(house.place.socket("deputy"));
    const deputy = await openPage(browser, other);
    await ask(house.agent, "send_mail", mail("anna@example.org"));
    for (const page of [boss, deputy]) {
      await open(page, "anna@example.org");
      await page.getByRole("button", { name: "Approve", exact: true }).click();
    }
    const yes = (page: Page) => page.getByRole("button", { name: "Yes, approve" }).click();
    await Promise.all([yes(boss), yes(deputy)]);
    const words = /^Approved by (boss|deputy) \(uid \d+\)/;
    const [seen, alsoSeen] = await Promise.all(
      [boss, deputy].map((page) => page.getByText(words).first().textContent()),
    );
    expect(words.exec(seen ?? "")?.[1]).toBe(words.exec(alsoSeen ?? "")?.[1]);
    const told = [boss, deputy].map((page) => page.getByText(/already approved by role|just being answered/));
    expect(await Promise.race(told.map((one) => one.first().textContent()))).toMatch(/Nothing was decided/);
    expect(house.ran).toHaveLength(1);
  });

  it("leave the open one and the focus alone when others arrive", async () => {
    const page = await enter();
    await ask(house.agent, "send_mail", mail("first@example.org"));
    await open(page, "first@example.org");
    await page.getByRole("button", { name: "Refuse", exact: true }).click();
    const reason = page.getByLabel("Reason (optional)");
    await reason.fill("half a sent");
    const place = await page.getByRole("button", { name: "Approve", exact: true }).boundingBox();
    for (const to of ["second@example.org", "third@example.org"])
      await ask(house.agent, "send_mail", mail(to));
    await page.locator("tr", { hasText: "third@example.org" }).waitFor();
    await page.keyboard.type("ence");
    expect(await reason.inputValue()).toBe("half a sentence");
    expect(await page.locator(".destinations").textContent()).toContain("first@example.org");
    expect(await page.getByRole("button", { name: "Approve", exact: true }).boundingBox()).toEqual(place);
    const rows = await page.locator("tbody tr").allTextContents();
    expect(rows.map((row) => /\w+@/.exec(row)?.[0])).toEqual(["first@", "second@", "third@"]);
  });

  it("can't be answered once they stand on something else than was shown, until one has looked again", async () => {
    const page = await enter();
    const call = await ask(house.agent, "send_mail", mail("anna@example.org"));
    await open(page, "anna@example.org");
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await house.agent.call("read_page", {}, { session: "one" }).final; // its taint rises
    await page.getByText("It has changed: look again.").waitFor();
    expect(await page.getByRole("button", { name: "Yes, approve" }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Approve", exact: true }).isDisabled()).toBe(true);
    await page.keyboard.press("l");
    await page.getByText("The taint is now confidential, untrusted; it was public, trusted").waitFor();
    await approve(page);
    expect(await call.final).toMatchObject({ status: "result", content: "done" });
  });

  it("are held against the digest that was shown, though the page has not heard of the change", async () => {
    const page = await enter();
    await ask(house.agent, "send_mail", mail("anna@example.org"));
    await open(page, "anna@example.org");
    await page.route("**/api/ask/callgate.approvals.show", (route) => route.abort());
    await house.agent.call("read_page", {}, { session: "one" }).final;
    await approve(page);
    await page.getByText("What the question stands on has changed since it was shown: look again").waitFor();
    await page.unroute("**/api/ask/callgate.approvals.show");
    await page.getByText("It has changed: look again.").waitFor();
    expect(house.ran).toEqual([]);
  });

  it("stay through a restart of the daemon and a reload of the page, and are answered after both", async () => {
    const page = await enter();
    await ask(house.agent, "send_mail", mail("anna@example.org"));
    await open(page, "anna@example.org");
    const address = page.url();
    await house.daemon.kill();
    await page.getByText("The broker is lost.").waitFor();
    expect(await page.locator(".destinations").textContent()).toContain("anna@example.org");
    const again = await Daemon.start(house.place);
    await again.event("peer.connected", ({ role }) => role === "tools"); // else nobody could run it
    await page.getByText("Live", { exact: true }).waitFor();
    await page.reload();
    await page.locator(".answer").waitFor();
    expect(page.url()).toBe(address);
    await approve(page);
    await page.getByText(/^Approved by boss/).waitFor();
    await expect.poll(() => house.ran).toEqual([mail("anna@example.org")]);
  });

  it("say when a remembered approval covers what, and it answers the next one", async () => {
    const page = await enter();
    await ask(house.agent, "send_mail", mail("anna@example.org"));
    await open(page, "anna@example.org");
    await page.keyboard.press("m");
    const choices = page.locator(".choice");
    const covers = await choices.allTextContents();
    expect(covers[0]).toMatch(/^send_mail with exactly these arguments, for role agent in every session/);
    expect(covers[1]).toMatch(/^send_mail with any arguments, for role agent in session one/);
    await page.getByRole("button", { name: "Approve and remember" }).click();
    await page.getByText("Choose what it is to cover.").waitFor();
    await choices.nth(1).click();
    await page.getByLabel("For how long").fill("forever");
    await page.getByRole("button", { name: "Approve and remember" }).click();
    await page.getByText("A length of time: 15m, 1h, 7d.").waitFor();
    await page.getByLabel("For how long").fill("1h");
    await page.getByLabel(/^For how many calls/).fill("1");
    await page.keyboard.press("Enter");
    await page.getByText(/It is remembered as grant remembered\./).waitFor();
    const next = await house.agent.call("send_mail", mail("bob@example.org"), { session: "one" }).final;
    expect(next).toMatchObject({ status: "result" });
    await ask(house.agent, "send_mail", mail("carol@example.org")); // the one call is used up
  });

  it("want a number of calls for what spends", async () => {
    const page = await enter();
    await ask(house.agent, "pay", { to: "shop", amount: 5 });
    await open(page, "shop");
    await page.keyboard.press("m");
    await page.locator(".choice").first().click();
    await page.keyboard.press("Enter");
    await page.getByText("Say for how many calls.").waitFor();
    expect(house.ran).toEqual([]);
  });

  it("are answered with the keyboard alone, and never by one key", async () => {
    const page = await enter();
    for (const to of ["first@example.org", "second@example.org"])
      await ask(house.agent, "send_mail", mail(to));
    await page.locator("tr", { hasText: "second@example.org" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator(".answer").waitFor();
    expect(await page.locator(".destinations").textContent()).toContain("second@example.org");
    for (let held = 0; held < 20; held += 1) await page.keyboard.down("a"); // as a key that is held repeats
    await page.keyboard.up("a");
    await page.getByRole("button", { name: "Yes, approve" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Yes, approve" }).waitFor({ state: "detached" });
    expect(house.ran).toEqual([]);
    await page.keyboard.press("a");
    await page.keyboard.press("Enter");
    await page.getByText(/^Approved by boss/).waitFor();
    expect(house.ran).toEqual([mail("second@example.org")]);
    await page.keyboard.press("Escape");
    await page.locator(".split-view").waitFor({ state: "detached" });
  });

  it("take no double click for two acts", async () => {
    const page = await enter();
    await ask(house.agent, "send_mail", mail("anna@example.org"));
    await open(page, "anna@example.org");
    const button = page.getByRole("button", { name: "Approve", exact: true });
    await button.dblclick();
    await page.getByRole("button", { name: "Yes, approve" }).waitFor();
    expect(house.ran).toEqual([]);
  });
});
