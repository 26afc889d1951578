// `callgate doctor`: callgate's units as the system's service manager has them: there, sound, started with the machine, running,
// and as they are on disk.

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
import type { UnitState, Units } from "./doctor_systemctl.ts";

/** Started again so often, it is in a loop rather than unlucky. */
const RESTARTS_MANY = 5;
const CONNECTOR = "callgate-connector.service";

/** `hasConnector`: there is a config for one; without it the unit, which is installed with the others, is of no use. */
export function examineUnits({ absent, units }: Units, hasConnector: boolean): Examined {
  const check = "units";
  if (absent !== undefined) {
    const runs = absent.startsWith("systemd runs");
    const told = {
      code: "units_unseen",
      what: absent,
      why: "what its units are like is not known",
      mend: ["systemctl status"],
    };
    return { check, summary: absent, findings: runs ? [unseenFinding(told)] : [] };
  }
  if (units.length === 0) return { check, summary: "none", findings: [notInstalled()] };
  const summary = units.map(({ name, active }) => `${name} ${active}`).join(", ");
  const wanted = units.filter(
    ({ name, active }) => hasConnector || active !== "inactive" || name !== CONNECTOR,
  );
  return { check, summary: visibleLine(summary, 1000), findings: wanted.flatMap(unitFindings) };
}

function notInstalled(): Finding {
  return noteFinding({
    code: "units_none",
    what: "no unit of callgate is installed",
    why: "nothing starts the broker with the machine, or again after a crash",
    mend: ["callgate install --help"],
  });
}

function unitFindings(unit: UnitState): readonly Finding[] {
  if (unit.load !== "loaded") return [unloaded(unit)];
  const found = [failed(unit), looping(unit), changed(unit), notEnabled(unit)];
  return found.filter((one) => one !== undefined);
}

function unloaded({ name, load, file }: UnitState): Finding {
  const word = shellWord(name);
  if (load === "masked")
    return warningFinding({
      code: "unit_masked",
      what: `${visibleLine(name)} is masked`,
      why: "it can't be started, by nobody",
      mend: [`systemctl unmask ${word}`],
    });
  const isGone = load === "not-found";
  return errorFinding({
    code: isGone ? "unit_gone" : "unit_broken",
    what: isGone
      ? `${visibleLine(name)} is in use, and its file is gone`
      : `${visibleLine(name)} can't be loaded (${visibleLine(load)})`,
    why: "it can't be started again",
    mend: isGone
      ? ["systemctl daemon-reload", `systemctl stop ${word}`]
      : [`systemd-analyze verify ${shellWord(file === "" ? name : file)}`],
  });
}

function failed({ name, active, result, exitStatus }: UnitState): Finding | undefined {
  if (active !== "failed") return undefined;
  const word = shellWord(name);
  const how = result === "exit-code" ? `exit status ${exitStatus}` : result;
  const isConfig = name === "callgate.service" && exitStatus === "78";
  return errorFinding({
    code: "unit_failed",
    what: `${visibleLine(name)} has failed (${visibleLine(how)})${isConfig ? ": it could not start, and its log says why" : ""}`,
    why: "nothing starts it again by itself",
    mend: [
      `journalctl -u ${word} -n 20 -o cat`,
      `systemctl reset-failed ${word}`,
      `systemctl restart ${word}`,
    ],
  });
}

function looping({ name, restarts, active }: UnitState): Finding | undefined {
  if (restarts < RESTARTS_MANY || active === "failed") return undefined;
  const word = shellWord(name);
  return warningFinding({
    code: "unit_restarts",
    what: `${visibleLine(name)} was started again ${restarts} times after it ended`,
    why: "it ends again and again; what it serves is away each time",
    mend: [`journalctl -u ${word} -p warning -n 50 -o cat`],
  });
}

function changed({ name, needsReload }: UnitState): Finding | undefined {
  if (!needsReload) return undefined;
  return warningFinding({
    code: "unit_changed",
    what: `${visibleLine(name)} was changed on disk since systemd read it`,
    why: "what stands in the file is not what is in force",
    mend: ["systemctl daemon-reload", `systemctl restart ${shellWord(name)}`],
  });
}

/** One that does not run either may be left out on purpose. */
function notEnabled({ name, enabled, active }: UnitState): Finding | undefined {
  if (enabled !== "disabled") return undefined;
  const told = { code: "unit_not_enabled", why: "after the next start of the machine it is not there" };
  const mend = [`systemctl enable --now ${shellWord(name)}`];
  if (active === "active")
    return warningFinding({ ...told, what: `${visibleLine(name)} is running, and not enabled`, mend });
  return noteFinding({
    ...told,
    what: `${visibleLine(name)} is installed, and neither runs nor is enabled`,
    mend,
  });
}
