// `callgate doctor`: the checks of the machine (the host's, handed in) and of the daemon, and how they are told: on a terminal a
// table with the findings below it, elsewhere a line a finding, for programs one JSON object.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { visible } from "../base/display.ts";
import { type Examined, type Finding, type Severity, worstOf } from "../base/findings.ts";
import { UsageFault } from "./call.ts";
import { type Flags, textOf } from "./command_row.ts";
import { examineDaemon, type OperatorSocket } from "./doctor_daemon.ts";
import { withoutSystemd } from "./doctor_remedies.ts";
import { packageVersion } from "./package_version.ts";
import type { Look, Tone } from "./paint.ts";
import { withProgress } from "./progress.ts";
import { type Dialogue, EXIT, jsonLine, lookOf } from "./terminal.ts";
import { fitted, textTable } from "./text_table.ts";

/** As the host has it. */
export interface DoctorHost {
  examineMachine(
    request: {
      readonly config: string;
      readonly user: string | undefined;
      readonly connector: string | undefined;
    },
    nowMs: number,
    onStep: (step: string) => void,
  ): Promise<MachineReport>;
  /** Whether it is a user of this machine, by name or number. */
  isUser(name: string): boolean;
  /** One line of JSON, for `examineMachine` in another process. */
  tellStore(directory: string, owner: number): Promise<string>;
}

interface MachineReport {
  readonly examined: readonly Examined[];
  readonly living: number | "none" | "unseen";
  readonly operators: readonly OperatorSocket[];
  readonly activated: boolean;
  readonly systemd: boolean;
  readonly policy: string | undefined;
}

const CONFIG = "/etc/callgate/callgate.toml";
const CONNECTOR = "/etc/callgate/connector.toml";

export async function doctor(
  terminal: Dialogue,
  flags: Flags,
  host: () => Promise<DoctorHost>,
): Promise<number> {
  const config = resolve(textOf(flags, "config") ?? CONFIG);
  const given = textOf(flags, "connector");
  const connector = given === undefined ? (existsSync(CONNECTOR) ? CONNECTOR : undefined) : resolve(given);
  const user = textOf(flags, "user");
  const { examineMachine, isUser } = await host();
  if (user !== undefined && !isUser(user))
    throw new UsageFault("--user must be a user of this machine, by name or number");
  const examined = await withProgress(terminal, "doctor", async (progress) => {
    const at = (step: string) => progress.at(`doctor: ${step}`);
    const machine = await examineMachine({ config, user, connector }, terminal.nowMs(), at);
    at("the daemon");
    const daemon = await examineDaemon({
      ...machine,
      socket: textOf(flags, "socket"),
      config,
      version: packageVersion(),
    });
    const all = [...machine.examined, daemon];
    return machine.systemd ? all : withoutSystemd(all);
  });
  tell(terminal, flags, examined);
  return examined.some(({ findings }) => worstOf(findings) === "error") ? EXIT.failed : EXIT.ok;
}

function tell(terminal: Dialogue, flags: Flags, examined: readonly Examined[]): void {
  if (flags.json === true) terminal.out(jsonLine(JSON.stringify(report(examined))));
  else if (terminal.isTerminal) terminal.out(fitted(forPerson(examined, lookOf(terminal)), terminal.columns));
  else terminal.out(asLines(examined));
}

function report(examined: readonly Examined[]) {
  return {
    ok: examined.every(({ findings }) => worstOf(findings) !== "error"),
    checks: examined.map(({ check, summary, findings }) => ({
      check,
      status: worstOf(findings),
      summary,
      findings,
    })),
  };
}

const TONES: Readonly<Record<Severity | "ok", Tone | undefined>> = {
  error: "bad",
  warning: "waiting",
  unseen: "quiet",
  note: undefined,
  ok: "good",
};

/** What is worst comes first. */
const ORDER: readonly Severity[] = ["error", "warning", "unseen", "note"];

interface Told extends Finding {
  readonly check: string;
}

/** What several checks say alike is told once. */
function inOrder(examined: readonly Examined[]): readonly Told[] {
  const told: Told[] = [];
  for (const { check, findings } of examined)
    for (const finding of findings) {
      const same = told.findIndex(({ code, what }) => code === finding.code && what === finding.what);
      const before = told[same];
      if (before === undefined) told.push({ ...finding, check });
      else told[same] = { ...before, check: before.check === check ? check : `${before.check}, ${check}` };
    }
  return ORDER.flatMap((severity) => told.filter((finding) => finding.severity === severity));
}

function forPerson(examined: readonly Examined[], look: Look): string {
  const rows = examined.map(({ check, summary, findings }) => {
    const worst = worstOf(findings);
    const first = findings.find(({ severity }) => severity === worst) ?? findings[0];
    const text = worst === "ok" && summary !== "" ? summary : (first?.what ?? summary);
    return [check, { text: worst, tone: TONES[worst] }, text];
  });
  const findings = inOrder(examined).map((finding) => `\n${findingText(finding, look)}`);
  return `${textTable(["CHECK", "STATUS", "WHAT"], rows, look)}${findings.join("")}\n${summaryLine(examined, look)}`;
}

/** The command lines stand alone, to be copied. */
function findingText({ severity, check, what, why, mend, code }: Told, { paint }: Look): string {
  const head = `${paint(TONES[severity], severity)} ${check}: ${visible(what)} ${paint("quiet", `[${code}]`)}\n`;
  return `${head}  why: ${visible(why)}\n${mend.map((line) => `    ${visible(line)}\n`).join("")}`;
}

function asLines(examined: readonly Examined[]): string {
  const plain: Look = { paint: (_, text) => text, columns: undefined };
  return `${inOrder(examined)
    .map((finding) => findingText(finding, plain))
    .join("")}${summaryLine(examined, plain)}`;
}

function summaryLine(examined: readonly Examined[], { paint }: Look): string {
  const all = examined.flatMap(({ findings }) => findings);
  const count = (severity: Severity) => all.filter((finding) => finding.severity === severity).length;
  const [errors, warnings, unseen] = [count("error"), count("warning"), count("unseen")];
  const told = [
    errors > 0 ? paint("bad", counted(errors, "error")) : undefined,
    warnings > 0 ? paint("waiting", counted(warnings, "warning")) : undefined,
    unseen > 0 ? `${counted(unseen, "thing")} that could not be looked at` : undefined,
  ].filter((part) => part !== undefined);
  const checks = counted(examined.length, "check");
  return told.length === 0
    ? `${checks}: ${paint("good", "nothing is wrong")}\n`
    : `${checks}: ${told.join(", ")}\n`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
