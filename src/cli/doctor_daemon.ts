// `callgate doctor`: what a daemon that lives says of itself, over an operator's socket. It is asked once, for its status.

import { visibleLine } from "../base/display.ts";
import {
  type Examined,
  errorFinding,
  type Finding,
  noteFinding,
  unseenFinding,
  warningFinding,
} from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";
import { span } from "../base/time_text.ts";
import type { Status } from "../client/answers.ts";
import { connect } from "../client/caller.ts";
import { CallgateError } from "../client/error.ts";

/** As the host has it (host/doctor.ts). */
export interface OperatorSocket {
  readonly path: string;
  readonly admitted: boolean;
  readonly user: string | undefined;
}

export interface DaemonQuestion {
  /** The socket that somebody named. */
  readonly socket: string | undefined;
  readonly operators: readonly OperatorSocket[];
  readonly living: number | "none" | "unseen";
  readonly activated: boolean;
  /** Of the config on disk. */
  readonly policy: string | undefined;
  /** For the command lines that are told. */
  readonly config: string;
  /** Of this program. */
  readonly version: string;
}

const CHECK = "daemon";
/** A daemon that takes longer for its status does not answer. */
const ANSWER_MS_MAX = 5000;

export async function examineDaemon(question: DaemonQuestion): Promise<Examined> {
  const { socket: given, operators, living } = question;
  const path = given ?? operators.find(({ admitted }) => admitted)?.path;
  if (given === undefined && living === "none") return idle(question);
  if (path === undefined) return examined("", [unasked(question)]);
  const asked = await ask(path);
  if ("status" in asked) {
    const summary = `answers on ${visibleLine(path)}: ${versionOf(asked.status)}up ${span(asked.status.uptime_ms)}, policy ${visibleLine(asked.status.policy.slice(0, 12))}`;
    return examined(summary, findingsOf(asked.status, question, path));
  }
  return examined("", [
    living === "none" && asked.kind === "unreachable" ? gone(path, question) : silent(path, asked, living),
  ]);
}

function versionOf({ version }: Status): string {
  return version === undefined || version === null ? "" : `version ${visibleLine(version, 64)}, `;
}

function examined(summary: string, findings: readonly Finding[]): Examined {
  return { check: CHECK, summary, findings };
}

function idle({ activated, config }: DaemonQuestion): Examined {
  if (activated) return examined("none runs; systemd starts it at the first call", []);
  return examined("", [
    warningFinding({
      code: "daemon_none",
      what: "no daemon runs with this config",
      why: "every call is `unreachable`",
      mend: [
        "systemctl start callgate",
        `# or, without systemd: callgate serve --config ${shellWord(config)}`,
      ],
    }),
  ]);
}

function gone(path: string, { config }: DaemonQuestion): Finding {
  return errorFinding({
    code: "daemon_unreachable",
    what: `nobody answers on ${visibleLine(path)}`,
    why: "every call is `unreachable`",
    mend: ["systemctl start callgate", `# or, without systemd: callgate serve --config ${shellWord(config)}`],
  });
}

function unasked({ operators, config }: DaemonQuestion): Finding {
  const who = operators.find(({ user }) => user !== undefined);
  const as = who === undefined ? "" : `runuser -u ${shellWord(who.user ?? "")} -- `;
  const [first] = operators;
  return unseenFinding({
    code: "daemon_unseen",
    what:
      first === undefined
        ? "no operator's socket is known, so no daemon was asked"
        : `no operator's role admits this user, so no daemon was asked`,
    why: "whether it answers, serves the config that is on disk, and what waits for somebody is not known",
    mend: [
      first === undefined
        ? `callgate doctor --config ${shellWord(config)} --socket PATH`
        : `${as}callgate status --socket ${shellWord(who?.path ?? first.path)}`,
    ],
  });
}

type Asked =
  | { readonly status: Status }
  | { readonly kind: "unreachable" | "no_access" | "lost" | "silent" | "denied" };

async function ask(path: string): Promise<Asked> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Asked>((resolve) => {
    timer = setTimeout(() => resolve({ kind: "silent" }), ANSWER_MS_MAX);
  });
  try {
    return await Promise.race([askStatus(path), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function askStatus(path: string): Promise<Asked> {
  let caller: Awaited<ReturnType<typeof connect>> | undefined;
  try {
    caller = await connect({ to: { path }, reconnect: { giveUpAfterMs: 0 } });
    const answer = await caller.call("callgate.status", {}, { session: "doctor" }).final;
    if (answer.status === "result") return { status: JSON.parse(answer.content) as Status }; // the broker's own words
    return { kind: answer.status === "denied" ? "denied" : "silent" };
  } catch (error) {
    if (!(error instanceof CallgateError)) throw error;
    if (error.code !== "unreachable") return { kind: "lost" };
    return { kind: error.message.includes("EACCES") ? "no_access" : "unreachable" };
  } finally {
    void caller?.close();
  }
}

function silent(
  path: string,
  asked: Exclude<Asked, { status: Status }>,
  living: number | "none" | "unseen",
): Finding {
  const where = visibleLine(path);
  const who = typeof living === "number" ? `the daemon (pid ${living})` : "the daemon";
  if (asked.kind === "no_access" || asked.kind === "denied")
    return unseenFinding({
      code: "daemon_unseen",
      what:
        asked.kind === "denied"
          ? `the role of ${where} may not ask for callgate.status`
          : `this user can't connect to ${where}`,
      why: "whether it answers, serves the config that is on disk, and what waits for somebody is not known",
      mend: ["# run this as a user whom an operator's role admits"],
    });
  if (asked.kind === "lost")
    return unseenFinding({
      code: "daemon_refuses",
      what: `${who} closed the connection to ${where}`,
      why: "it does not admit this user, or the role is frozen or at a limit",
      mend: ["journalctl -u callgate -n 20 -o cat | callgate tail"],
    });
  return errorFinding({
    code: "daemon_silent",
    what:
      asked.kind === "silent"
        ? `${who} took the connection on ${where} and does not answer`
        : `${who} lives, and nobody answers on ${where}`,
    why: "no call comes through",
    mend: ["journalctl -u callgate -n 50 -o cat | callgate tail", "systemctl restart callgate"],
  });
}

const STORE_WORDS: Readonly<Record<string, string>> = {
  failing: "the store can't be written (is the disk full?)",
  stalled: "the store has been writing for too long",
};

function findingsOf(status: Status, question: DaemonQuestion, path: string): readonly Finding[] {
  const { policy, config } = question;
  const to = `--socket ${shellWord(path)}`;
  const frozen = (status.roles ?? []).filter((role) => role.frozen || (role.frozen_sessions ?? 0) > 0);
  const { pending_approvals: waiting = 0, unknown_calls: unknown = 0, store } = status;
  const found: (Finding | undefined)[] = [
    store === undefined || store.condition === "ok"
      ? undefined
      : errorFinding({
          code: "daemon_store",
          what: STORE_WORDS[store.condition] ?? `the store is ${visibleLine(store.condition)}`,
          why: "calls are answered `unavailable` until it can",
          mend: ["df -h  # make room, at least 8 MiB; it recovers by itself"],
        }),
    staleness(status, policy, config, to),
    otherVersion(status, question),
    unknown === 0
      ? undefined
      : warningFinding({
          code: "daemon_unknown_calls",
          what: `${counted(unknown, "call")} with an unknown outcome`,
          why: "each may have run or not; equal calls are asked about until somebody settles it",
          mend: [`callgate calls list --state unknown ${to}`],
        }),
    frozen.length === 0
      ? undefined
      : warningFinding({
          code: "daemon_frozen",
          what: `frozen, wholly or in part: ${visibleLine(frozen.map(({ role }) => role).join(", "))}`,
          why: "it makes no calls until somebody lets it go on",
          mend: frozen.map(({ role }) => `callgate freeze ${shellWord(role)} --thaw ${to}`),
        }),
    waiting === 0
      ? undefined
      : noteFinding({
          code: "daemon_waiting",
          what: `${counted(waiting, "question")} for a person to answer`,
          why: "each call waits until its question is answered, or expires",
          mend: [`callgate approvals watch ${to}`],
        }),
  ];
  return found.filter((one) => one !== undefined);
}

/** An upgrade that waits for a restart. */
function otherVersion({ version }: Status, { version: own }: DaemonQuestion): Finding | undefined {
  if (version === undefined || version === null || version === own) return undefined;
  return warningFinding({
    code: "daemon_version",
    what: `the daemon is of version ${visibleLine(version, 64)}, this program of ${own}`,
    why: "what was mended between them is in force after a restart only",
    mend: ["systemctl restart callgate"],
  });
}

function staleness(
  status: Status,
  policy: string | undefined,
  config: string,
  to: string,
): Finding | undefined {
  const file = visibleLine(config);
  if (status.policy_stale)
    return errorFinding({
      code: "daemon_stale",
      what: `${file} was changed and refused${status.policy_stale_because ? `: ${visibleLine(status.policy_stale_because, 300)}` : ""}`,
      why: "the policy before it is in force",
      mend: [`callgate check --config ${shellWord(config)}  # mend it, then:`, `callgate reload ${to}`],
    });
  if (policy === undefined || policy === status.policy) return undefined;
  return warningFinding({
    code: "daemon_not_reloaded",
    what: `the policy in force is not the one of ${file}: it was changed since, or the daemon has another config`,
    why: "what stands in the file is not what is decided by",
    mend: [`callgate reload ${to}`],
  });
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
