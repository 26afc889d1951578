// What `callgate install` looks at on this machine.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { InstallHost } from "./install_choice.ts";

export function thisInstallHost(): InstallHost {
  return {
    uid: process.geteuid?.() ?? -1,
    node: process.execPath,
    script: process.argv[1] ?? "",
    systemd: systemdVersion(),
    isUser: (name) => isListed(name),
  };
}

/** Where the list can't be read nobody is in it, which is told of. */
function isListed(name: string): boolean {
  try {
    return readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .some((line) => line.startsWith(`${name}:`));
  } catch {
    return false;
  }
}

/** undefined: there is none here, or it does not say. */
function systemdVersion(): number | undefined {
  try {
    const said = execFileSync("systemctl", ["--version"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    const version = /^systemd ([0-9]+)/.exec(said)?.[1];
    return version === undefined ? undefined : Number(version);
  } catch {
    return undefined;
  }
}
