// A person before the console, for tests: the real daemon, the compiled `callgate console` as its own process,
// and Chromium that opens its link. What the page writes to the browser's console as a fault, and what its CSP
// refused, is kept: a test that expects none says so.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, chromium, type Page } from "playwright-core";
import { callgate, onCleanUp, Place } from "../daemon/daemon.ts";

/** Tests of the page need it. */
export const NEEDED = ["chromium"] as const;

/** One for all tests of a file; close it in `afterAll`. */
export function openBrowser(): Promise<Browser> {
  // Without its sandbox, since tests may run as root, where there is none to have.
  return chromium.launch({ executablePath: pathOf("chromium"), args: ["--no-sandbox"] });
}

function pathOf(program: string): string {
  const found = (process.env["PATH"] ?? "").split(delimiter).map((directory) => join(directory, program));
  const [first] = found.filter((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (first === undefined) throw new Error(`${program} is not installed`);
  return first;
}

/** A directory whose config is this very text. */
export function placeWith(config: string): Place {
  const place = new Place("");
  writeFileSync(place.config, config, { mode: 0o644 });
  return place;
}

export class ConsoleServer {
  readonly #child: ChildProcess;
  readonly #links: string[] = [];
  #waiting: (() => void)[] = [];
  #taken = 0;

  /** Answers when the first link is printed. */
  static async start(socket: string, ...words: readonly string[]): Promise<ConsoleServer> {
    const server = new ConsoleServer(socket, words);
    await server.#linkAt(0);
    return server;
  }

  private constructor(socket: string, words: readonly string[]) {
    const args = [callgate(), "console", "--socket", socket, "--json", ...words];
    this.#child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    onCleanUp(() => this.stop());
    if (this.#child.stdout === null) throw new Error("its output is not read");
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.#links.push((JSON.parse(line) as { readonly url: string }).url);
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** `http://127.0.0.1:PORT` */
  get origin(): string {
    return new URL(this.#links[0] ?? "").origin;
  }

  get port(): string {
    return new URL(this.origin).port;
  }

  /** A link that nobody has used yet. */
  async link(): Promise<string> {
    const at = this.#taken;
    this.#taken += 1;
    if (at >= this.#links.length) this.#child.kill("SIGUSR2");
    return this.#linkAt(at);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }

  async #linkAt(at: number): Promise<string> {
    while (at >= this.#links.length) {
      if (this.#child.exitCode !== null) throw new Error("the console has ended without a link");
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        this.#child.once("exit", () => resolve());
      });
    }
    return this.#links[at] ?? "";
  }
}

export interface Look {
  readonly dark?: boolean;
  /** 360 by 780, with a finger. */
  readonly phone?: boolean;
  /** Behind `#/`, once logged in. */
  readonly at?: string;
}

const FAULTS = new WeakMap<Page, string[]>();

/** A browser of its own (cookies, storage), logged in. Ends with the test's other things. */
export async function openPage(browser: Browser, server: ConsoleServer, look: Look = {}): Promise<Page> {
  const page = await strangersPage(browser, look);
  await page.goto(await server.link());
  await page.locator(".nav").waitFor();
  if (look.at !== undefined) await goTo(page, look.at);
  return page;
}

/** The same, at no address yet. */
export async function strangersPage(browser: Browser, { dark, phone }: Look = {}): Promise<Page> {
  const context = await browser.newContext({
    viewport: phone === true ? { width: 360, height: 780 } : { width: 1360, height: 860 },
    hasTouch: phone === true,
    colorScheme: dark === true ? "dark" : "light",
    reducedMotion: "reduce",
  });
  onCleanUp(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  FAULTS.set(page, faults);
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !isRefusal(message.text())) faults.push(message.text());
  });
  return page;
}

/** Chromium tells of every request that failed; the page tells the person itself. */
function isRefusal(text: string): boolean {
  return text.startsWith("Failed to load resource");
}

/** What went wrong within the page so far. */
export function faultsOf(page: Page): readonly string[] {
  return FAULTS.get(page) ?? [];
}

export async function goTo(page: Page, at: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${at}`)}`);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Finding {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
}

/** What axe calls serious or critical on the page as it stands, each with where. */
export async function seriousFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const findings = (await page.evaluate(
    "axe.run(document).then(({ violations }) => violations)",
  )) as Finding[];
  return findings
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} at ${target.join(" ")}: ${failureSummary}`),
    );
}
