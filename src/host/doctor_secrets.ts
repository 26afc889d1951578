// `callgate doctor`: files that hold a secret: those that the connector's config names, looked at as the connector itself would,
// and those that units hand over by LoadCredential=. What is in them is told nowhere.

import { type Stats, statSync } from "node:fs";
import { visibleLine } from "../base/display.ts";
import {
  type Examined,
  errorFinding,
  type Finding,
  unseenFinding,
  warningFinding,
} from "../base/findings.ts";
import { shellWord } from "../base/shell_word.ts";
import { AS_ROOT } from "./doctor_config.ts";
import { sightOf } from "./doctor_place.ts";
import type { Credential, Units } from "./doctor_systemctl.ts";
import { type Accounts, asUser, canBe } from "./doctor_users.ts";
import { errnoCode } from "./trusted_paths.ts";

const CONNECTOR_UNIT = /^callgate-connector(?:@.*)?\.service$/;

export async function examineSecrets(
  connector: string | undefined,
  units: Units,
  accounts: Accounts,
): Promise<Examined> {
  const handed = units.credentials;
  const findings = [
    ...handed.flatMap((credential) => handedFindings(credential, accounts)),
    ...(connector === undefined ? [] : await connectorFindings(connector, units, accounts)),
  ];
  const parts = [
    connector === undefined ? undefined : `${visibleLine(connector)} and what it names`,
    handed.length === 0 ? undefined : `${handed.length} credentials of units`,
  ].filter((part) => part !== undefined);
  return {
    check: "secrets",
    summary: parts.length === 0 ? "no connector here, no credentials of units" : parts.join(", "),
    findings,
  };
}

/** systemd reads it as root, and gives the service a copy. */
function handedFindings({ path, needed }: Credential, accounts: Accounts): readonly Finding[] {
  let stats: Stats | undefined;
  try {
    stats = statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    const what = `the credential ${visibleLine(path)} can't be looked at (${errnoCode(error)})`;
    return [
      unseenFinding({
        code: "secret_unseen",
        what,
        why: "whether others can read it is not known",
        mend: AS_ROOT,
      }),
    ];
  }
  if (stats === undefined && !needed) return [];
  if (stats === undefined)
    return [
      errorFinding({
        code: "secret_missing",
        what: `the credential ${visibleLine(path)}, which a unit hands over, is not there`,
        why: "that unit does not start",
        mend: [`install -m 0600 /dev/stdin ${shellWord(path)}  # then type or paste it, and ctrl-D`],
      }),
    ];
  const found: Finding[] = [];
  if (stats.uid !== 0)
    found.push(
      errorFinding({
        code: "secret_owner",
        what: `the credential ${visibleLine(path)} belongs to ${accounts.userText(stats.uid)}, not to root`,
        why: "that user reads it, and can put another in its place",
        mend: [`chown root:root ${shellWord(path)}`],
      }),
    );
  if ((stats.mode & 0o077) !== 0)
    found.push(
      errorFinding({
        code: "secret_open",
        what: `the credential ${visibleLine(path)} can be read by others than its owner (mode ${(stats.mode & 0o7777).toString(8).padStart(4, "0")})`,
        why: "whoever reads it can use the model in your name",
        mend: [`chmod 0600 ${shellWord(path)}`],
      }),
    );
  return found;
}

const LINE = /^.*?:\d+:\d+: (error|warning): (.*)$/s;

/** As `callgate connector serve --check` has it, in the place of the connector's user where its unit names one. */
async function connectorFindings(
  path: string,
  { units }: Units,
  accounts: Accounts,
): Promise<readonly Finding[]> {
  const named = accounts.uidOf(units.find((unit) => CONNECTOR_UNIT.test(unit.name))?.user ?? "");
  const uid = named ?? process.geteuid?.() ?? -1;
  const command = `callgate connector serve --check --config ${shellWord(path)}`;
  if (!canBe(uid) || (named === undefined && sightOf(path) === "unseen"))
    return [
      unseenFinding({
        code: "secret_unseen",
        what: `${visibleLine(path)} is looked at as ${accounts.userText(uid)} only`,
        why: "whether its secrets can be used is not known",
        mend: AS_ROOT,
      }),
    ];
  const { checkConnector } = await import("./connector_check.ts");
  const { lines } = await asUser(uid, () => checkConnector(path));
  return lines.flatMap((line) => {
    const [, kind, message = ""] = LINE.exec(line) ?? [];
    if (kind === undefined) return [];
    const told = {
      code: kind === "error" ? "connector_mistake" : "connector_warning",
      what: visibleLine(`${path}: ${message}`, 500),
      mend: [command],
    };
    return kind === "error"
      ? [errorFinding({ ...told, why: "the connector does not start" })]
      : [warningFinding({ ...told, why: "turns of a model may fail, or wait" })];
  });
}
