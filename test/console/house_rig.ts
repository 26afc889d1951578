// The house of house.ts with its daemon and its console, for tests of the pages.

import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { loadLibc } from "../../src/host/libc.ts";
import { openStore } from "../../src/host/open_store.ts";
import type { Store } from "../../src/store/port.ts";
import { Daemon, onCleanUp, type Place } from "../daemon/daemon.ts";
import { ConsoleServer, faultsOf, type Look, openPage, placeWith } from "./browser.ts";
import { HOUSE_CONFIG, morning, type Servants, serve } from "./house.ts";

export interface OpenHouse {
  readonly place: Place;
  readonly daemon: Daemon;
  readonly server: ConsoleServer;
  readonly socket: (role: string) => string;
}

/** All of it, after an ordinary morning. `operator`: whose console it is. */
export async function openHouse(config: string = HOUSE_CONFIG, operator = "operator"): Promise<OpenHouse> {
  const house = await startHouse(placeWith(config), operator);
  keep(await serve(house.socket));
  keep(await morning(house.socket));
  return house;
}

/** A page that is closed again when the test that runs now has ended. */
export async function lookAt(browser: Browser, { server }: OpenHouse, look: Look): Promise<Page> {
  const page = await openPage(browser, server, look);
  onTestFinished(() => page.context().close());
  return page;
}

/** Another morning, in sessions of its own. */
export async function playMorning(house: OpenHouse, letter: string): Promise<void> {
  keep(await morning(house.socket, letter));
}

/** The daemon and the console alone. */
export async function startHouse(place: Place, operator = "operator"): Promise<OpenHouse> {
  const daemon = await Daemon.start(place);
  const socket = (role: string) => place.socket(role);
  return { place, daemon, server: await ConsoleServer.start(socket(operator)), socket };
}

function keep(servants: Servants): void {
  onCleanUp(() => servants.close());
}

/** What a daemon that is not running now will find in its store. */
export async function fillStore(place: Place, fill: (store: Store) => Promise<void>): Promise<void> {
  const opened = await openStore({
    config: { stateDir: join(place.directory, "state"), replayForMs: 86_400_000 },
    libc: await loadLibc(),
    log: () => undefined,
    auditBounds: () => ({ keepForMs: 1e12, bytesMax: 1e12 }),
    storedBytesMax: () => 1e9,
  });
  if (!opened.ok) throw new Error(opened.fault);
  await fill(opened.value.store);
  await opened.value.close();
}

/** Nothing of a peer's has become more than text, and nothing went wrong in the page. */
export async function expectUnharmed(page: Page): Promise<void> {
  expect(await page.evaluate("window.hit")).toBeUndefined();
  expect(await page.locator("main img, main b, main script").count()).toBe(0);
  const text = await page.locator("#app").textContent();
  expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u001b]/);
  expect(faultsOf(page)).toEqual([]);
}

/** Nothing is wider than the screen. */
export async function expectFits(page: Page): Promise<void> {
  const wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
  expect(await page.evaluate(wider)).toBeLessThanOrEqual(0);
}
