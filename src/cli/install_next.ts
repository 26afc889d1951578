// What is to be done once `callgate install` has written its files, in its order.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type GivenProgram, givenPrograms } from "./install_given.ts";
import { type InstallRequest, identitiesOf } from "./install_plan.ts";
import type { Step } from "./install_steps.ts";
import { enabledUnits } from "./install_write.ts";
import { isInHomes } from "./systemd_sandbox.ts";
import { USER_PREFIX } from "./systemd_units.ts";

/** `isChanged`: that socket has another unit than before. What was done already may be done again. */
export function stepsAfter(
  root: string,
  request: InstallRequest,
  isChanged: (socket: string) => boolean,
): readonly Step[] {
  const at = root === "/" ? [] : [`--root=${root}`];
  const programs = givenPrograms(root, request);
  const services = programs.map(({ unit }) => unit);
  const units = [...socketsOf(request), "callgate.service", ...services];
  const users: Step = { why: "Make the users:", words: ["systemd-sysusers", ...at] };
  const directories = ["systemd-tmpfiles", "--create", ...at, "/etc/tmpfiles.d/callgate.conf"];
  const { users: made, groups, members } = identitiesOf(request);
  return [
    ...(made.length + groups.length + members.length > 0 ? [users] : []),
    ...strangersOf(members),
    { why: "Make the directories:", words: directories },
    ...(root === "/" ? servedOf(programs) : []),
    ...accessOf(root, programs),
    ...(root === "/" ? [...ended(request), RELOAD] : []),
    {
      why: "Enable the sockets, the broker and the programs:",
      words: ["systemctl", ...at, "enable", ...units],
    },
    ...(root === "/" ? [started(request, services, isChanged)] : []),
  ];
}

const RELOAD: Step = { why: "Have systemd read the units:", words: ["systemctl", "daemon-reload"] };

function socketsOf({ roles }: InstallRequest): readonly string[] {
  return roles.map(({ name }) => `callgate-role@${name}.socket`);
}

function strangersOf(members: ReturnType<typeof identitiesOf>["members"]): readonly Step[] {
  const missing = members.filter(([, , isThere]) => !isThere);
  return missing.map(([user, group]) => ({
    why: `No user here is called ${user}. When there is one:`,
    words: ["usermod", "--append", "--groups", group, user],
    byHand: true,
  }));
}

/** What a provider serves and is not there, but for homes, which are somebody's. */
function servedOf(programs: readonly GivenProgram[]): readonly Step[] {
  return programs.flatMap(({ role, roots }) =>
    roots
      .filter(({ path }) => !existsSync(path) && !isInHomes(path))
      .map(({ path }) => {
        const user = `${USER_PREFIX}${role}`;
        const words = ["install", "-d", "-m", "0750", "-o", user, "-g", user, path];
        return { why: "Make what a provider serves and is not there:", words };
      }),
  );
}

/** Nobody's rights are changed by an installer. */
function accessOf(root: string, programs: readonly GivenProgram[]): readonly Step[] {
  const why = "Let the provider at what it serves (not done by --now):";
  return programs.flatMap(({ role, roots }) =>
    roots
      .filter(({ path }) => existsSync(join(root, path)))
      .map(({ path, writable }) => {
        const rights = `u:${USER_PREFIX}${role}:${writable ? "rwX" : "rX"}`;
        return { why, words: ["setfacl", "-R", "-m", rights, path], byHand: true };
      }),
  );
}

/** What is enabled for roles that are gone; a console's instance is a user, and no role. */
function ended({ roles }: InstallRequest): readonly Step[] {
  const names = new Set(roles.map(({ name }) => name));
  const units = enabledUnits("/").filter((unit) => {
    const [, kind, role = ""] = /^callgate-([a-z]+)@(.+)\.[a-z]+$/.exec(unit) ?? [];
    return kind !== "console" && !names.has(role);
  });
  if (units.length === 0) return [];
  const why = "End what the config does not have any more:";
  return [{ why, words: ["systemctl", "disable", "--now", ...units] }];
}

/**
 * The broker's start makes the sockets that are missing. systemd changes none of a service that runs, so those that are to
 * change are named behind it: it stops, they are made anew, and it starts. The others stay open all the time, and what
 * comes meanwhile waits in them.
 */
function started(
  request: InstallRequest,
  services: readonly string[],
  isChanged: (socket: string) => boolean,
): Step {
  const sockets = socketsOf(request).filter((socket) => isChanged(socket) && isListening(request, socket));
  const words = ["systemctl", "restart", "callgate.service", ...sockets, ...services];
  return { why: "Start them, or start them anew; no request is lost:", words };
}

function isListening({ places }: InstallRequest, socket: string): boolean {
  const role = /^callgate-role@(.*)\.socket$/.exec(socket)?.[1];
  try {
    return readFileSync("/proc/net/unix", "utf8").includes(` ${places.sockets}/${role}.sock\n`);
  } catch {
    return false;
  }
}
