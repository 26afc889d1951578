// An upgrade as `npm install --global` makes it: the package's directory is moved aside, another is put in its place, and the old
// files are removed, all of it below a broker that runs and is asked all the time.

import { execFileSync } from "node:child_process";
import { relative, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWith } from "../needs.ts";
import type { Guest } from "./guest.ts";
import { CONFIG_FILE, openHouse } from "./house.ts";
import { expectOnceEach, load, ran } from "./load.ts";

const REPOSITORY = resolve(import.meta.dirname, "../..");
const GLOBAL = "/usr/lib/node_modules";
const OPERATOR = "--socket /run/callgate/operator.sock";

/** What an installed package brings with it. */
function dependencies(): readonly string[] {
  const words = ["ls", "--omit=dev", "--all", "--parseable"];
  const listed = execFileSync("npm", words, { cwd: REPOSITORY, encoding: "utf8" });
  const paths = listed.trim().split("\n").slice(1);
  return paths.map((path) => relative(`${REPOSITORY}/node_modules`, path));
}

/** In the place of the directories that a guest borrows from the machine: files that can be removed. */
async function ownPackage(guest: Guest): Promise<void> {
  const copies = dependencies().map(
    (name) =>
      `mkdir -p real/node_modules/${name} && cp -a callgate/node_modules/${name}/. real/node_modules/${name}/`,
  );
  const steps = [
    `cd ${GLOBAL} && mkdir -p real/dist && cp -a callgate/dist/. real/dist/ && rm -f real/dist/node_modules`,
    ...copies,
    "mv real/dist/package.json real/ && umount callgate/dist callgate/node_modules && rm -rf callgate && mv real callgate",
  ];
  await guest.must(steps.join(" && "));
}

let guest: Guest;

describeWith(["systemd-analyze", "unshare", "systemctl"], "an upgrade under systemd", () => {
  beforeAll(async () => {
    guest = await openHouse({}, ownPackage);
  }, 120_000);
  afterAll(() => guest?.stop());

  it("loses no call, doubles none, and what runs says so until it is started anew", async () => {
    const stop = await load(guest, 6);
    const version = async () =>
      JSON.parse(await guest.must(`${guest.callgate} status --json ${OPERATOR}`)).version;
    const before = await version();
    await guest.must(
      `cd ${GLOBAL} && cp -a callgate .callgate-new && sed -i 's/"version": "[^"]*"/"version": "9.9.9"/' .callgate-new/package.json && mv callgate .callgate-old && mv .callgate-new callgate && rm -rf .callgate-old`,
    );
    expect(await version()).toBe(before);
    expect(await guest.must(`${guest.callgate} doctor || true`)).toContain("[daemon_version]");

    // Its own files are gone: what it would have to load first it can't, says so, and goes on with what it has.
    const condition = `\\n[[grants]]\\nid = "more"\\nrole = "agent"\\ntools = ["hang"]\\neffect = "deny"\\nwhen = "args.text == \\\\"x\\\\""\\n`;
    await guest.must(`printf '${condition}' >> ${CONFIG_FILE} && systemctl reload callgate.service`);
    const refused = await guest.until("journalctl -u callgate.service -o cat", (log) =>
      log.includes('"config.refused"'),
    );
    expect(refused).toContain("the program's own files are gone");
    expect(await version()).toBe(before);

    await guest.must(`${guest.callgate} install --now`);
    expect(await version()).toBe("9.9.9");
    const then = (await ran(guest)).length;
    await guest.until("wc -l < /var/lib/tally/ran", (lines) => Number(lines) > then);
    const told = await stop();
    await expectOnceEach(guest, told);
    const left = await guest.must(`${guest.callgate} doctor || true`);
    expect(left).not.toContain("_version]");
    expect(left).not.toContain("_replaced]");
  }, 240_000);
});
