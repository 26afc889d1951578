// `callgate uninstall`: takes away what `callgate install` has written, and leaves the state, the config and the users,
// unless the state is asked for too.

import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { visibleLine } from "../base/display.ts";
import type { Flags } from "./command_row.ts";
import { rootOf } from "./install.ts";
import { type RunStep, runSteps, type Step } from "./install_steps.ts";
import { installedFiles, removeInstalled } from "./install_write.ts";
import { codeOf } from "./replace_file.ts";
import { OPERATORS_GROUP, STATE_DIRECTORY } from "./systemd_units.ts";
import { EXIT, type Terminal } from "./terminal.ts";

export async function uninstall(terminal: Terminal, flags: Flags, run: RunStep): Promise<number> {
  const root = rootOf(flags);
  const isHere = root === "/";
  const force = flags["force"] === true;
  const found = installedFiles(root);
  const going = found.filter(({ intact }) => intact || force);
  if (flags["dryRun"] === true) {
    terminal.out(going.map(({ path }) => `would be removed: ${join(root, path)}\n`).join(""));
    return EXIT.ok;
  }
  if (found.length === 0) terminal.out(`nothing that callgate install has written is in ${root}\n`);
  if (isHere && going.length > 0 && !(await runSteps(terminal, ending(going.map(({ path }) => path)), run)))
    terminal.err("callgate: what runs could not be ended; its files are removed all the same\n");
  let gone = 0;
  for (const { path } of going) {
    const removed = await removeInstalled(root, path);
    if (removed.ok) terminal.out(`removed: ${join(root, path)}\n`);
    else terminal.err(`callgate: ${visibleLine(removed.fault, 500)}\n`);
    if (removed.ok) gone += 1;
  }
  for (const { path } of found.filter((one) => !going.includes(one)))
    terminal.err(`kept, since it was changed by hand (--force removes it): ${join(root, path)}\n`);
  const purged = flags["purge"] === true ? await purge(terminal, join(root, STATE_DIRECTORY)) : true;
  if (isHere && gone > 0) await runSteps(terminal, [{ why: "", words: ["systemctl", "daemon-reload"] }], run);
  terminal.out(left(flags["purge"] === true));
  return purged && gone === found.length ? EXIT.ok : EXIT.failed;
}

/** Sockets, programs and the broker in one go: a caller in a socket would start it again. */
function ending(paths: readonly string[]): readonly Step[] {
  const units = paths.flatMap((path) => /^etc\/systemd\/system\/([^/]+)$/.exec(path)?.[1] ?? []);
  const disable: Step = { why: "", words: ["systemctl", "disable", ...units] };
  return [
    { why: "", words: ["systemctl", "stop", "callgate-*", "callgate.*"] },
    ...(units.length === 0 ? [] : [disable]),
  ];
}

/** All that is in it; a directory that is a mount of its own stays, empty. */
async function purge(terminal: Terminal, state: string): Promise<boolean> {
  try {
    const names = await readdir(state);
    for (const name of names) await rm(join(state, name), { recursive: true, force: true });
    await rmdir(state).catch(() => undefined);
    terminal.out(`removed with all that it remembers: ${state}\n`);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true;
    terminal.err(`callgate: ${state} can't be removed (${codeOf(error)})\n`);
    return false;
  }
}

function left(purged: boolean): string {
  const state = purged ? [] : [`the state, ${STATE_DIRECTORY} (--purge removes it)`];
  const rest = [
    "the config",
    `the users, callgate and callgate-ROLE, and the group ${OPERATORS_GROUP} (userdel, groupdel)`,
  ];
  return `What stays: ${[...state, ...rest].join("; ")}.\n`;
}
