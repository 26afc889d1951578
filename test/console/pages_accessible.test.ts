import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { cleanUp } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { goTo, type Look, NEEDED, openBrowser, seriousFindings } from "./browser.ts";
import { expectFits, expectUnharmed, lookAt, type OpenHouse, openHouse } from "./house_rig.ts";

// axe on sessions, grants, policy, audit and load, in each look, with hostile texts on them; and that nothing
// has to be scrolled sideways but what has a box of its own for that.

const LOOKS: readonly (readonly [string, Look])[] = [
  ["light", {}],
  ["dark", { dark: true }],
  ["on a phone", { phone: true }],
  ["on a phone in the dark", { phone: true, dark: true }],
];

/** Where, and what is there once the page is drawn. */
const PAGES: readonly (readonly [string, string])[] = [
  ["sessions", "tbody tr"],
  ["sessions/chat/letter-to-anna", ".timeline > li"],
  ["grants", "tbody tr"],
  ["grants/chat-writes-notes", ".sentence"],
  ["grants/+", ".sentence"],
  ["policy", ".picture .node"],
  ["audit", "tbody tr"],
  ["load", ".chart canvas"],
];

let browser: Browser;
let house: OpenHouse;

describeWith(NEEDED, "the other pages have no serious finding of axe", () => {
  beforeAll(async () => {
    browser = await openBrowser();
    house = await openHouse();
  });
  afterAll(async () => {
    await browser?.close();
    await cleanUp();
  });

  for (const [name, look] of LOOKS) {
    it(name, async () => {
      const page = await lookAt(browser, house, look);
      const found: Record<string, readonly string[]> = {};
      for (const [at, drawn] of PAGES) {
        await goTo(page, at);
        await page.locator(drawn).first().waitFor();
        found[at] = await seriousFindings(page);
        await expectFits(page);
        await expectUnharmed(page);
      }
      expect(found).toEqual(Object.fromEntries(PAGES.map(([at]) => [at, []])));
    }, 120_000);

    it(`${name}, where something is opened`, async () => {
      const page = await lookAt(browser, house, { ...look, at: "sessions/chat/letter-to-anna" });
      await page.getByRole("button", { name: "Lower the taint" }).click();
      await page.getByRole("dialog").locator(".consequences li").waitFor();
      expect(await seriousFindings(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Freeze this session" }).click();
      expect(await seriousFindings(page)).toEqual([]);
      await goTo(page, "policy");
      await page.getByRole("button", { name: "chat write_file" }).click();
      await page.getByRole("button", { name: /^Look at it.*mail\.search/ }).click();
      await page.getByText("Finds letters.").waitFor();
      expect(await seriousFindings(page)).toEqual([]);
      await expectFits(page);
      await goTo(page, "grants/+");
      await page.getByRole("button", { name: "Add this grant" }).click();
      await page.getByText("Choose whom it serves.").waitFor();
      expect(await seriousFindings(page)).toEqual([]);
    }, 120_000);
  }
});
