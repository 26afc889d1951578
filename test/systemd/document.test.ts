import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import { Guest } from "./guest.ts";

const ROOT = join(import.meta.dirname, "../..");
const TEXT = readFileSync(join(ROOT, "docs/systemd.md"), "utf8");

it("docs/systemd.md names the units that there are, and no others", () => {
  const rows = [...TEXT.matchAll(/^\| `(callgate[^`]*)` +\|/gm)].map(([, unit = ""]) => unit);
  const templates = rows.map((unit) => unit.replace(/@[A-Z]+\./, "@."));
  const found = readdirSync(join(ROOT, "systemd")).filter((name) => name.startsWith("callgate"));
  expect(templates.toSorted()).toEqual(found.toSorted());
});

describeWith(["systemd-analyze", "unshare", "systemctl"], "the commands of docs/systemd.md", () => {
  it("make a service that is sound, on a machine that has its people", async () => {
    const guest = await Guest.boot({});
    try {
      await guest.must("useradd --create-home alice && useradd --create-home bob");
      const [block = ""] = TEXT.split("```text\n").slice(1);
      const commands = [...(block.split("```")[0]?.matchAll(/^# callgate (.*)$/gm) ?? [])].map(
        ([, words]) => words,
      );
      expect(commands.length).toBe(3);
      let said = "";
      for (const words of commands) said = await guest.must(`${guest.callgate} ${words}`);
      expect(said).toMatch(/^12 checks: /m);
      expect(said).not.toMatch(/^error/m);
      const asked = `runuser -u bob -- ${guest.callgate} call list_dir '{"path":"/srv/docs"}' --socket /run/callgate/agent.sock`;
      await guest.until(asked, (out) => out.includes("[result: internal, trusted]"));
      const status = `runuser -u alice -- ${guest.callgate} status --socket /run/callgate/operator.sock`;
      expect(await guest.must(status)).toMatch(/^version +\d/m);
      await guest.must(`${guest.callgate} uninstall --purge`);
      expect(await guest.must("ls /etc/systemd/system | grep -c callgate || true")).toBe("0\n");
    } finally {
      await guest.stop();
    }
  }, 120_000);
});
