// The host's part of `callgate doctor`: one table of checks, run one after the other. Each only looks: nothing is changed, no
// lock outlives the moment in which the store is opened, and no socket is connected to. What a living daemon says of itself is
// asked by the command (cli/doctor_daemon.ts).

import { join } from "node:path";
import { type Examined, errorFinding } from "../base/findings.ts";
import { examineConfig, examineUsers } from "./doctor_config.ts";
import { examineDisk } from "./doctor_disk.ts";
import { examineLibraries, examineNode } from "./doctor_node.ts";
import { type DoctorRequest, findPlace, type Place } from "./doctor_place.ts";
import { examineSecrets } from "./doctor_secrets.ts";
import { examineSockets } from "./doctor_sockets.ts";
import { examineClock, examineState } from "./doctor_state.ts";
import { examineStore, storeJson } from "./doctor_store.ts";
import { askUnits, type Units } from "./doctor_systemctl.ts";
import { examineUnits } from "./doctor_units.ts";
import { readAccounts } from "./doctor_users.ts";
import { clockErrorUs } from "./libc.ts";

/** What the checks share. */
interface Surroundings {
  readonly place: Place;
  readonly units: Units;
  /** The newest time in the store; known once the store was looked at. */
  newestMs: number | undefined;
}

interface Check {
  /** What is being done, for a line of progress. */
  readonly doing: string;
  readonly look: (around: Surroundings) => Examined | Promise<Examined>;
}

/** In the order in which they are told: what the others stand on first. */
const CHECKS: readonly Check[] = [
  { doing: "Node", look: ({ place }) => examineNode(process.version, place.nowMs, livingPid(place)) },
  { doing: "libraries", look: () => examineLibraries() },
  { doing: "the config", look: ({ place }) => examineConfig(place) },
  { doing: "users and groups", look: ({ place }) => examineUsers(place) },
  { doing: "sockets", look: ({ place }) => examineSockets(place) },
  { doing: "the state directory", look: ({ place }) => examineState(place) },
  { doing: "the disk", look: ({ place }) => examineDisk(place) },
  { doing: "the store and its audit", look: lookIntoStore },
  {
    doing: "the clock",
    look: async ({ place, newestMs }) => examineClock(place.nowMs, newestMs, await clockErrorUs()),
  },
  {
    doing: "secrets",
    look: ({ place, units }) => examineSecrets(place.request.connector, units, place.accounts),
  },
  { doing: "units", look: ({ place, units }) => examineUnits(units, place.request.connector !== undefined) },
];

async function lookIntoStore(around: Surroundings): Promise<Examined> {
  const { examined, newestMs } = await examineStore(around.place);
  around.newestMs = newestMs;
  return examined;
}

/** What the machine came to, and where a daemon that lives can be asked. */
export interface MachineReport {
  readonly examined: readonly Examined[];
  /** The process that holds the state directory; `none`: nobody does; `unseen`: it can't be told. */
  readonly living: number | "none" | "unseen";
  /** Of the operators' roles, where they would be. */
  readonly operators: readonly OperatorSocket[];
  /** systemd listens for the daemon: it starts with the first call. */
  readonly activated: boolean;
  /** It runs, and answers. */
  readonly systemd: boolean;
  /** Of the policy that the config's file makes now; undefined: it makes none. */
  readonly policy: string | undefined;
}

export interface OperatorSocket {
  readonly path: string;
  /** Whether the daemon lets in whoever asks here. */
  readonly admitted: boolean;
  /** Somebody whom it lets in, by name. */
  readonly user: string | undefined;
}

/** A check that breaks is a fault of its own and stops no other. `onStep`: told what is begun. */
export async function examineMachine(
  request: DoctorRequest,
  nowMs: number,
  onStep: (step: string) => void,
): Promise<MachineReport> {
  const units = await askUnits();
  const place = await findPlace(request, units, nowMs);
  const around: Surroundings = { place, units, newestMs: undefined };
  const examined: Examined[] = [];
  for (const check of CHECKS) {
    onStep(check.doing);
    examined.push(await unbroken(check, around));
  }
  return {
    examined,
    living: livingPid(place) ?? (place.living === "unseen" ? "unseen" : "none"),
    operators: operatorsOf(place),
    activated: units.units.some(({ name, active }) => name.endsWith(".socket") && active === "active"),
    systemd: units.absent === undefined,
    policy: place.config.ok ? place.config.value.config.policy.version : undefined,
  };
}

function operatorsOf({ config, accounts }: Place): readonly OperatorSocket[] {
  if (!config.ok) return [];
  const { policy, socketsDir } = config.value.config;
  const own = { uid: process.geteuid?.() ?? -1, gids: new Set(process.getgroups?.() ?? []) };
  return [...policy.roles.values()]
    .filter(({ operator }) => operator)
    .map(({ name, admits }) => {
      const isOpen = admits === "anyone";
      const admitted =
        isOpen || admits.uids.has(own.uid) || [...own.gids].some((gid) => admits.gids.has(gid));
      const [uid] = isOpen ? [] : admits.uids;
      const user = uid === undefined ? undefined : accounts.userName(uid);
      return { path: join(socketsDir, `${name}.sock`), admitted, user };
    });
}

function livingPid({ living }: Place): number | undefined {
  return typeof living === "object" ? living.pid : undefined;
}

async function unbroken({ doing, look }: Check, around: Surroundings): Promise<Examined> {
  try {
    return await look(around);
  } catch (error) {
    const what = `looking at ${doing} broke (${error instanceof Error ? error.name : "unknown"})`;
    const finding = errorFinding({
      code: "check_broke",
      what,
      why: "what it would have found is not known",
      mend: ["# this is a fault of callgate's own: please report it"],
    });
    return { check: doing, summary: "", findings: [finding] };
  }
}

/** By name or number, as `--user` takes it. */
export function isUser(name: string): boolean {
  return /^[0-9]{1,9}$/.test(name) || readAccounts().uidOf(name) !== undefined;
}

/** For the process that looks into a store for another (doctor_store.ts). */
export function tellStore(directory: string, owner: number): Promise<string> {
  return storeJson(directory, owner);
}
