import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { cleanUp } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { ask, type House, openHouse } from "./asking.ts";
import { goTo, type Look, NEEDED, openBrowser, openPage, seriousFindings } from "./browser.ts";

// axe on the shell, the questions and the calls, in each look.

const LOOKS: readonly (readonly [string, Look])[] = [
  ["light", {}],
  ["dark", { dark: true }],
  ["on a phone", { phone: true }],
  ["on a phone in the dark", { phone: true, dark: true }],
];

vi.setConfig({ testTimeout: 180_000 }); // a browser on a busy machine

let browser: Browser;
let house: House;

/** Nothing is wider than the screen, so nothing has to be scrolled sideways. */
async function expectFits(page: Page): Promise<void> {
  const wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  expect(await page.evaluate(wider)).toBeLessThanOrEqual(0);
}

async function expectGood(page: Page): Promise<void> {
  expect(await seriousFindings(page)).toEqual([]);
  await expectFits(page);
}

describeWith(NEEDED, "questions and calls have no serious finding of axe", () => {
  beforeAll(async () => {
    browser = await openBrowser();
    house = await openHouse();
    await house.agent.call("read_page", {}, { session: "one" }).final;
    const refused = await ask(house.agent, "hurry", {});
    await refused.final; // expired
    await ask(house.agent, "send_mail", { to: "b\u043eb@example.org", text: "x".repeat(3000) });
    await ask(
      house.agent,
      "pay",
      { to: `${"long-".repeat(60)}name`, amount: 5 },
      "another_session.".repeat(6),
    );
  });
  afterAll(async () => {
    await browser?.close();
    await cleanUp();
  });

  for (const [name, look] of LOOKS) {
    it(name, async () => {
      const page = await openPage(browser, house.server, look);
      await page.getByText("No longer waiting").waitFor();
      await expectGood(page);
      for (const key of ["a", "r", "m"]) {
        await goTo(page, "questions");
        await page.locator("tr", { hasText: "long-" }).getByRole("button").click();
        await page.locator(".answer").waitFor();
        await page.keyboard.press(key);
        await page.locator(".answer-form").waitFor();
        await expectGood(page);
        await page.keyboard.press("Escape");
      }
      await goTo(page, "calls");
      await page.locator("tbody tr").first().waitFor();
      await expectGood(page);
      await page.locator("tr", { hasText: "read_page" }).getByRole("button").click();
      await page.getByText("words of a stranger").waitFor();
      await expectGood(page);
    });
  }
});
