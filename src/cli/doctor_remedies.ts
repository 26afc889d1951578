// `callgate doctor`: remedies as this machine can take them: where systemd does not run, its commands say in words what to do.

import type { Examined } from "../base/findings.ts";

const RULES: readonly (readonly [line: RegExp, instead: string | undefined])[] = [
  [/^systemctl restart callgate\b/, "# stop the daemon, and start it again"],
  [/^systemctl start callgate\b/, undefined], // what is without systemd stands below it
  [/^journalctl /, "# look into the daemon's log: callgate tail --help"],
  [/^timedatectl set-ntp /, "# let a service keep the clock (chronyd, ntpd), here or on the host"],
  [/^timedatectl$/, undefined],
];
const OTHERWISE = "# or, without systemd: ";

export function withoutSystemd(examined: readonly Examined[]): readonly Examined[] {
  return examined.map((one) => ({
    ...one,
    findings: one.findings.map((finding) => ({ ...finding, mend: finding.mend.flatMap(instead) })),
  }));
}

function instead(line: string): readonly string[] {
  if (line.startsWith(OTHERWISE)) return [line.slice(OTHERWISE.length)];
  const rule = RULES.find(([pattern]) => pattern.test(line));
  if (rule === undefined) return [line];
  return rule[1] === undefined ? [] : [rule[1]];
}
