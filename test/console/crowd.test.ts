import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { cleanUp } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { ask, callerOf, openHouse } from "./asking.ts";
import { NEEDED, openBrowser, openPage } from "./browser.ts";

// Five thousand questions at once: an agent that has gone mad, or a night without an approver.

const WAITING = 5000;
const SESSIONS = 5;
/** Asked at once. */
const AT_ONCE = 200;

let browser: Browser;

describeWith(NEEDED, "five thousand questions", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await cleanUp();
  });

  it("are listed page by page, filtered, and answered while others arrive", async () => {
    const house = await openHouse();
    const crowd = await callerOf(house.place, "crowd");
    for (let first = 0; first < WAITING; first += AT_ONCE) {
      const asked = Array.from({ length: AT_ONCE }, (_, i) =>
        ask(crowd, "send_mail", { to: `person${first + i}@example.org` }, `s${i % SESSIONS}`),
      );
      await Promise.all(asked);
    }
    const page = await openPage(browser, house.server);
    await page.getByText("5,000 wait, 200 shown, oldest first").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(200); // so what is drawn does not grow with the crowd
    expect(await page.title()).toBe("(5000) Questions · callgate");

    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText("5,000 wait, 400 shown, oldest first").waitFor();
    const rows = await page.locator("tbody tr").allTextContents();
    expect(new Set(rows.map((row) => /person\d+@/.exec(row)?.[0])).size).toBe(400);

    await page.getByLabel("Filter").fill("person123@ crowd");
    await page.locator("tbody tr").nth(1).waitFor({ state: "detached" });
    const more = ask(crowd, "send_mail", { to: "latecomer@example.org" }, "s0");
    await page.locator("tbody tr").first().getByRole("button").click();
    await page.locator(".answer").waitFor();
    await page.keyboard.press("a");
    await page.keyboard.press("Enter");
    await page.getByText(/^Approved by boss/).waitFor();
    await more;
    expect(house.ran).toEqual([{ to: "person123@example.org" }]);
    await page.getByLabel("Filter").fill("");
    await page.getByText(/^5,000 wait, /).waitFor();
  }, 180_000);

  it("of one role are asked of the broker, so those of a busy role hide nobody's", async () => {
    const house = await openHouse();
    const crowd = await callerOf(house.place, "crowd");
    const asked = Array.from({ length: 300 }, (_, i) =>
      ask(crowd, "send_mail", { to: `p${i}@x` }, `s${i % 2}`),
    );
    await Promise.all(asked);
    await ask(house.agent, "send_mail", { to: "anna@example.org" });
    const page = await openPage(browser, house.server);
    await page.getByText("301 wait, 200 shown").waitFor();
    await page.getByLabel("Role").selectOption("agent");
    await page.getByText("anna@example.org").waitFor();
    await page.getByText("1 waits, oldest first").waitFor();
  }, 60_000);
});
