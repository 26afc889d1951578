import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Put, putCalls } from "../broker/many_calls.ts";
import { cleanUp, Daemon } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { goTo, NEEDED, openBrowser, openPage, placeWith } from "./browser.ts";
import { HOUSE_CONFIG } from "./house.ts";
import { fillStore, startHouse } from "./house_rig.ts";

// A hundred thousand calls in the store, in a thousand sessions, and what one needle of them looks like on the pages.

const CALLS = 100_000;
const SESSIONS = 1000;
/** For each act, on a machine that runs other tests beside; on a quiet one each takes a small part of it. */
const USABLE_MS = 20_000;

let browser: Browser;

function* calls(untilMs: number): Iterable<Put> {
  for (let i = 0; i < CALLS; i += 1) {
    const session = i === 3 ? "needle" : `s${i % SESSIONS}`;
    const askedAtMs = untilMs - (CALLS - i) * 100;
    const tool = i % 2 === 0 ? "fetch_page" : "read_file";
    yield { role: "helper", session, call: BigInt(i + 1), tool, uid: 0, askedAtMs, endedAtMs: askedAtMs + 5 };
  }
}

describeWith(NEEDED, "a hundred thousand calls", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await cleanUp();
  });

  it("leave sessions, their timelines and the audit quick to look at", async () => {
    const place = placeWith(HOUSE_CONFIG);
    const first = await Daemon.start(place); // makes the state directory
    await first.stop();
    await fillStore(place, (store) => putCalls(store, calls(Date.now() - 60_000)));
    const house = await startHouse(place);
    const page = await openPage(browser, house.server, { at: "audit" });
    page.setDefaultTimeout(USABLE_MS);

    const records = page.getByRole("region", { name: "Records" });
    await records.locator("tbody tr").nth(99).waitFor();
    await records.getByRole("button", { name: "Older" }).click();
    await records.locator("tbody tr").nth(199).waitFor();
    expect(await records.locator("tbody tr").count()).toBe(200); // what is drawn does not grow with the store

    await goTo(page, "sessions/helper/s7");
    await page.locator(".timeline > li").nth(30).waitFor();
    const before = await page.locator(".timeline > li").count();
    await page.getByRole("button", { name: "Older" }).click();
    await page.locator(".timeline > li").nth(before).waitFor();

    // Its two records lie behind two hundred thousand others.
    await goTo(page, "sessions/helper/needle");
    await page.locator(".timeline > li", { hasText: "read_file" }).waitFor();

    await goTo(page, "audit");
    await page.getByRole("button", { name: "Verify the audit" }).click();
    await page.getByText("The audit is whole.").waitFor({ timeout: 60_000 });
  }, 240_000);
});
