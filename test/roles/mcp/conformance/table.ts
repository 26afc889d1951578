// The suite's outcomes with the server itself and through the gate, side by side: as the table of docs/mcp_conformance.md,
// and as what a test has to say of each difference.

import { type Check, type Outcome, VERSIONS, type Version } from "./suite.ts";

export interface Pair<T = Outcome> {
  readonly direct: T;
  readonly gate: T;
}

export type Runs = ReadonlyMap<Version, Pair>;

/** Scenarios of what the gate does not pass on at all: they would say so of every one of their checks. */
const NO_TOOLS = /^(prompts-|resources-|completion-|sep-2164-|tasks-)|non-tool-request/;

/** Why fewer checks pass through the gate; whatever stands in `docs`. */
export const BY_DESIGN: Readonly<Record<string, string>> = {
  "server-stateless":
    "a server's wish for sampling is refused; a changed tool is out of service until an operator accepts it",
  "server-sse-polling": "a stream that broke is not resumed: the client asks again, and joins its call",
  "logging-set-level": "a server's log is not passed on",
  "tools-call-with-logging": "a server's log is not passed on",
  "tools-call-sampling": "a server's own requests are refused",
  "tools-call-elicitation": "a server's own requests are refused",
  "elicitation-sep1034-defaults": "a server's own requests are refused",
  "elicitation-sep1330-enums": "a server's own requests are refused",
  "input-required-result-basic-elicitation": "a server's own requests are refused",
  "input-required-result-basic-sampling": "a server's own requests are refused",
  "input-required-result-basic-list-roots": "a server's own requests are refused",
  "input-required-result-request-state": "a server's own requests are refused",
  "input-required-result-multiple-input-requests": "a server's own requests are refused",
  "input-required-result-multi-round": "a server's own requests are refused",
  "input-required-result-missing-input-response": "a server's own requests are refused",
  "input-required-result-result-type": "a server's own requests are refused",
  "input-required-result-tampered-state": "a server's own requests are refused",
  "input-required-result-capability-check": "a server's own requests are refused",
  "input-required-result-validate-input": "a server's own requests are refused",
};

/** All scenarios of any version, in the suite's order. */
export function scenariosOf(runs: Runs): readonly string[] {
  const names = [...runs.values()].flatMap(({ direct }) => [...direct.keys()]);
  return [...new Set(names)].filter((name) => !NO_TOOLS.test(name));
}

/** Checks that the server passes and the gate does not, in any version, with what the suite says of them. */
export function lostChecks(runs: Runs, scenario: string): readonly string[] {
  return [...runs].flatMap(([version, { direct, gate }]) => {
    const passes = new Set(passed(direct.get(scenario)).map(({ id }) => id));
    const fails = (gate.get(scenario) ?? []).filter((check) => passes.has(check.id) && isCounted(check));
    const lost = fails.filter(({ status }) => status !== "SUCCESS");
    const isSilent = passed(gate.get(scenario)).length < passed(direct.get(scenario)).length;
    const missing = lost.length === 0 && isSilent ? [`${version}: fewer checks`] : [];
    return [...lost.map(({ id, errorMessage }) => `${version} ${id}: ${errorMessage ?? ""}`), ...missing];
  });
}

export function rowOf(runs: Runs, scenario: string): string {
  const cells = VERSIONS.map((version) => cell(runs.get(version), scenario));
  const why = lostChecks(runs, scenario).length > 0 ? (BY_DESIGN[scenario] ?? "?") : "";
  return `| ${scenario} | ${cells.join(" | ")} | ${why} |`;
}

export function tableOf(runs: Runs): string {
  const head = `| scenario | ${VERSIONS.join(" | ")} | why they differ |\n| --- |${" --- |".repeat(VERSIONS.length + 1)}`;
  const rows = scenariosOf(runs).map((scenario) => rowOf(runs, scenario));
  return [head, ...rows].join("\n");
}

function cell(pair: Pair | undefined, scenario: string): string {
  const direct = pair?.direct.get(scenario);
  if (pair === undefined || direct === undefined) return "";
  const [own, through] = [share(direct), share(pair.gate.get(scenario) ?? [])];
  return own === through ? own : `${own}, gate ${through}`;
}

function share(checks: readonly Check[]): string {
  return `${passed(checks).length}/${checks.filter(isCounted).length}`;
}

function passed(checks: readonly Check[] = []): readonly Check[] {
  return checks.filter(({ status }) => status === "SUCCESS");
}

function isCounted({ status }: Check): boolean {
  return status === "SUCCESS" || status === "FAILURE" || status === "WARNING";
}
