// The version of this package, out of its own package.json.

import { readFileSync } from "node:fs";

export function packageVersion(): string {
  for (const up of ["../../package.json", "../../../package.json"]) {
    try {
      const found = JSON.parse(readFileSync(new URL(up, import.meta.url), "utf8")) as {
        name?: string;
        version?: string;
      };
      if (found.name === "callgate" && found.version !== undefined) return found.version;
    } catch {
      // from source it is two levels up, compiled three
    }
  }
  return "unknown";
}
