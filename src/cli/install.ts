// `callgate install`: units, sockets, users and directories for the roles of a config, as files for systemd; what to do
// with them it says, or does (--now). Idempotent: what is right already is not touched, and what somebody has changed by
// hand stays, and is told of.

import { join, resolve } from "node:path";
import { visibleLine } from "../base/display.ts";
import type { Result } from "../base/faults.ts";
import type { InstalledConfig } from "../base/installed_config.ts";
import { forbiddingSettings } from "../roles/mcp/provide/namespaces.ts";
import { UsageFault } from "./call.ts";
import { type Flags, textOf, type Words } from "./command_row.ts";
import { isMissing } from "./init_write.ts";
import { type InstallHost, isInstalled, requestOf } from "./install_choice.ts";
import { stepsAfter } from "./install_next.ts";
import { dropInPath, type InstallFile, type InstallRequest, planInstall } from "./install_plan.ts";
import { type RunStep, runSteps, stepsText } from "./install_steps.ts";
import { installedFiles, removeInstalled, type Standing, standingOf, writeMarked } from "./install_write.ts";
import { isInHomes } from "./systemd_sandbox.ts";
import { CONFIG_DIRECTORY } from "./systemd_units.ts";
import { EXIT, type Terminal } from "./terminal.ts";

/** The host's part: program.ts has it. */
export type ReadConfig = (
  path: string,
  root: string,
) => Promise<
  Result<
    InstalledConfig,
    readonly { readonly line: number; readonly column: number; readonly message: string }[]
  >
>;

interface Judged extends InstallFile {
  readonly standing: Standing;
}

export async function install(
  terminal: Terminal,
  words: Words,
  flags: Flags,
  { read, host, run }: { readonly read: ReadConfig; readonly host: InstallHost; readonly run: RunStep },
): Promise<number> {
  const root = rootOf(flags);
  const isHere = root === "/";
  if (flags["now"] === true && !isHere) throw new UsageFault("--now is for this machine: without --root");
  const path = resolve(textOf(flags, "config") ?? `${CONFIG_DIRECTORY}/callgate.toml`);
  const loaded = await read(path, root);
  if (!loaded.ok) return refuseConfig(terminal, join(root, path), loaded.fault);
  const request = requestOf(words, flags, loaded.value, isHere ? host : { ...host, systemd: undefined });
  const plan = planInstall(request).map((file): Judged => ({ ...file, standing: standingOf(root, file) }));
  const stale = staleFiles(root, request, plan);
  if (flags["dryRun"] === true) {
    terminal.out(
      plan.map((file) => preview(root, file)).join("") +
        stale.map((path) => `would be removed: ${join(root, path)}\n`).join(""),
    );
    return EXIT.ok;
  }
  const force = flags["force"] === true;
  const failed = await apply(root, plan, stale, force);
  if (failed !== undefined) {
    terminal.err(`callgate: ${visibleLine(failed, 500)}\n`);
    return EXIT.failed;
  }
  terminal.out(report(root, plan, stale, force));
  for (const note of notesOf(request, host)) terminal.err(`note: ${visibleLine(note, 500)}\n`);
  const kept = force ? [] : plan.filter(({ standing }) => standing === "foreign");
  for (const { path } of kept)
    terminal.err(
      `kept, since it was changed or written by hand (--force replaces it): ${join(root, path)}\n`,
    );
  const steps = stepsAfter(root, request, restarted(plan));
  const status = kept.length > 0 ? EXIT.failed : EXIT.ok;
  if (flags["now"] !== true) {
    terminal.out(stepsText(steps));
    return status;
  }
  return (await runSteps(terminal, steps, run)) ? status : EXIT.failed;
}

export function rootOf(flags: Flags): string {
  const root = textOf(flags, "root") ?? "/";
  if (!root.startsWith("/")) throw new UsageFault("--root is an absolute path");
  return root;
}

function refuseConfig(
  terminal: Terminal,
  path: string,
  faults: readonly { readonly line: number; readonly column: number; readonly message: string }[],
): number {
  for (const { line, column, message } of faults)
    terminal.err(`${path}:${line}:${column}: ${visibleLine(message, 1000)}\n`);
  const hint = isMissing(path) ? ": `callgate init --systemd` makes one" : "";
  terminal.err(`callgate: nothing was written, since the config can't be used${hint}\n`);
  return EXIT.failed;
}

/** Of roles that the config does not have any more, as far as nobody has changed them. */
function staleFiles(
  root: string,
  { roles }: InstallRequest,
  plan: readonly InstallFile[],
): readonly string[] {
  const wanted = new Set(plan.map(({ path }) => path));
  const kept = roles.flatMap(({ name }) =>
    ["files", "mcp"].map((kind) => dropInPath(`callgate-${kind}@${name}.service`)),
  );
  for (const path of kept) wanted.add(path);
  return installedFiles(root)
    .filter(({ path, intact }) => intact && !wanted.has(path))
    .map(({ path }) => path);
}

async function apply(
  root: string,
  plan: readonly Judged[],
  stale: readonly string[],
  force: boolean,
): Promise<string | undefined> {
  for (const file of plan) {
    if (file.standing === "same" || (file.standing === "foreign" && !force)) continue;
    const written = await writeMarked(root, file);
    if (!written.ok) return written.fault;
  }
  for (const path of stale) {
    const removed = await removeInstalled(root, path);
    if (!removed.ok) return removed.fault;
  }
  return undefined;
}

const SAID: Readonly<Record<Standing, string>> = {
  missing: "new",
  ours: "changed",
  same: "as it was",
  foreign: "kept",
};

function preview(root: string, { path, text, standing }: Judged): string {
  const head = `#### ${join(root, path)} (${SAID[standing]})\n`;
  return standing === "same" ? head : `${head}${text}\n`;
}

function report(root: string, plan: readonly Judged[], stale: readonly string[], force: boolean): string {
  const lines = plan
    .filter(({ standing }) => standing !== "same" && (force || standing !== "foreign"))
    .map(
      ({ path, standing }) => `  ${standing === "missing" ? "new      " : "changed  "}${join(root, path)}\n`,
    );
  const gone = stale.map((path) => `  removed  ${join(root, path)}\n`);
  const all = [...lines, ...gone];
  return all.length === 0 ? "everything is as it was\n" : `${all.join("")}\n`;
}

function notesOf({ places, files, mcp }: InstallRequest, host: InstallHost): readonly string[] {
  const source = isInstalled(host.script)
    ? []
    : [`this callgate runs from its source, so the units name ${places.program.script}: install it there`];
  const homes = [...files.values()].flat().filter(({ path }) => isInHomes(path));
  const forbidding = mcp.size > 0 ? forbiddingSettings() : [];
  return [
    ...source,
    ...forbidding.map(
      (setting) =>
        `${setting} on this machine: a server of MCP can't be confined, and does not start, before that is changed`,
    ),
    ...homes.map(
      ({ path }) => `${path}: its provider's user must get through the directories above it (setfacl)`,
    ),
  ];
}

/** Of the plan's sockets, whether one has another unit now: it has to be made anew. */
function restarted(plan: readonly Judged[]): (socket: string) => boolean {
  const changed = plan.filter(({ standing }) => standing === "ours" || standing === "missing");
  const template = changed.some(({ path }) => path.endsWith("/callgate-role@.socket"));
  return (socket) => template || changed.some(({ path }) => path === dropInPath(socket));
}
