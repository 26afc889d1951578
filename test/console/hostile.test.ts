import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { cleanUp } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { ask, type House, openHouse } from "./asking.ts";
import { faultsOf, goTo, NEEDED, openBrowser, openPage } from "./browser.ts";

// Texts of an agent's that try to be more than texts. They set `window.hit` where they come to run.

const RUNS = [
  `<img src=x onerror="window.hit=1">`,
  `</pre></script><script>window.hit=1</script>`,
  `<svg onload=window.hit=1>`,
  `"><a href="javascript:window.hit=1">look</a>`,
  `<style>body{display:none}</style>`,
  `{{constructor.constructor('window.hit=1')()}}`,
].join(" ");
const HIDES = "\u202egnp.exe\u2066 zero\u200bwidth \u001b[31mred\u001b[0m \u0007 tag\u{e0041} \u2028line";
const SHOWN = [
  "\\u{202e}gnp.exe\\u{2066} zero\\u{200b}width",
  "\\u001b[31mred\\u001b[0m \\u0007 tag\\u{e0041} \\u{2028}line",
];

vi.setConfig({ testTimeout: 180_000 }); // a browser on a busy machine

let browser: Browser;
let house: House;

/** Nothing of it ran, nothing of it is an element, and the page says no fault. */
async function expectHarmless(page: Page): Promise<void> {
  expect(await page.evaluate("window.hit")).toBeUndefined();
  expect(await page.locator("img, .main script, .main style, .main svg, a[href^='javascript']").count()).toBe(
    0,
  );
  expect(await page.evaluate("document.body.innerText")).not.toMatch(/[\u202e\u2066\u200b\u001b\u0007]/);
  expect(faultsOf(page)).toEqual([]);
}

describeWith(NEEDED, "what an agent writes", () => {
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterEach(cleanUp);
  afterAll(() => browser?.close());

  it("is shown as text, with what hides or moves words written out, in list, question and call", async () => {
    house = await openHouse();
    const page = await openPage(browser, house.server);
    const call = await ask(house.agent, "send_mail", { to: `${HIDES}${RUNS}`, [RUNS]: HIDES });
    const row = page.locator("tbody tr").first();
    await row.waitFor();
    expect(await row.textContent()).toContain("\\u{202e}gnp.exe");
    await expectHarmless(page);
    await row.getByRole("button").click();
    await page.locator(".answer").waitFor();
    const shown = (await page.locator(".split-view").textContent()) ?? "";
    for (const text of SHOWN) expect(shown).toContain(text);
    expect(shown).toContain("<script>window.hit=1</script>");
    await expectHarmless(page);
    await goTo(page, `calls/agent/one/${call.call}`);
    await page.getByRole("heading", { name: "Arguments" }).waitFor();
    for (const text of SHOWN) expect(await page.locator(".split-view").textContent()).toContain(text);
    await expectHarmless(page);
  });

  it("names the letters of a destination that only look like others", async () => {
    house = await openHouse();
    await ask(house.agent, "send_mail", { to: "b\u043eb@example.org" });
    const page = await openPage(browser, house.server);
    await page.locator("tbody tr").first().getByRole("button").click();
    await page.getByText("Not plain letters: \u043e U+043E").waitFor();
  });

  it("is folded where it is long, never in a destination, and unfolds to 500 KiB without stopping the page", async () => {
    house = await openHouse();
    const to = `${"someone@example.org,".repeat(200)}LAST`;
    const text = `${"x".repeat(256_000)}MIDDLE${"<b>y</b>".repeat(32_000)}`;
    const call = await ask(house.agent, "send_mail", { to, text });
    const page = await openPage(browser, house.server);
    await page.locator("tbody tr").first().getByRole("button").click();
    await page.locator(".answer").waitFor();
    expect(await page.locator(".destinations").textContent()).toContain("LAST");
    expect(await page.locator(".json").textContent()).not.toContain("MIDDLE");
    await page.getByRole("button", { name: "Show all 51" }).click();
    await expect.poll(() => page.locator(".json").textContent()).toContain("MIDDLE");
    expect(await page.locator(".main b").count()).toBe(0);
    await page.getByRole("button", { name: "Show less" }).click();
    await page.getByRole("button", { name: "Approve", exact: true }).click();
    await page.getByText("Part of its arguments is folded").waitFor();
    await page.getByRole("button", { name: "Yes, approve" }).click();
    expect(await call.final).toMatchObject({ status: "result" });
    expect(house.ran).toEqual([{ to, text }]);
  });

  it("can't be a session's name that leaves its place in an address", async () => {
    house = await openHouse();
    const session = "a.b_c-d";
    const call = await ask(house.agent, "send_mail", { to: "anna@example.org" }, session);
    const page = await openPage(browser, house.server);
    for (const at of [
      "questions/%2e%2e%2fapi%2flogin",
      "calls/%3Cimg%3E/%E0%A4%A/1",
      `questions/${"x".repeat(5000)}`,
    ]) {
      await goTo(page, at);
      await page.getByRole("alert").first().waitFor();
      await expectHarmless(page);
    }
    await goTo(page, `calls/agent/${session}/${call.call}`);
    await page.getByRole("heading", { name: "Arguments" }).waitFor();
  });
});
