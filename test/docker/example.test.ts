// The example for containers: its config is one without mistakes or warnings, and its services run as those whom that config admits.
// The image itself is built and tried by build_image.sh.

import { chmodSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { loadConfig } from "../../src/host/config.ts";
import { type Inspected, inspectConfig } from "../../src/host/config_places.ts";
import { cleanUp, temporaryDirectory } from "../host/listen_fixture.ts";

afterEach(cleanUp);

const COMPOSE = readFileSync("examples/docker/compose.yaml", "utf8");
const DOCKERFILE = readFileSync("Dockerfile", "utf8");

function config(): string {
  const path = join(temporaryDirectory(), "callgate.toml");
  copyFileSync("examples/docker/callgate.toml", path);
  chmodSync(path, 0o644);
  return path;
}

/** The part of one service. */
function service(name: string): string {
  return new RegExp(`^  ${name}:\\n((?:    .*\\n|\\n)+)`, "m").exec(COMPOSE)?.[1] ?? "";
}

it("its config has no mistakes and no warnings, but for places that only the container has", async () => {
  const inspected = await inspectConfig(config());
  const { warnings } = (inspected.ok ? inspected.value : { warnings: inspected.fault }) as Inspected;
  expect(warnings.filter(({ code }) => code !== "place")).toEqual([]);
});

it("each service runs as the user of its role, and the broker is in each role's group", async () => {
  const loaded = await loadConfig(config());
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.fault));
  const role = (name: string) => {
    const found = loaded.value.config.policy.roles.get(name);
    if (found === undefined || found.admits === "anyone") throw new Error(`no users of ${name}`);
    return { user: [...found.admits.uids].join(), group: String(found.socket.gid) };
  };
  for (const name of ["agent", "files"]) {
    const { user, group } = role(name);
    expect(service(name)).toContain(`user: "${user}:${group}"`);
    expect(service(name)).toContain("network_mode: none");
  }
  const operator = role("operator");
  expect(service("console")).toContain(`user: "\${OPERATOR_UID:-${operator.user}}:${operator.group}"`);
  const groups = ["agent", "files", "operator"].map((name) => `"${role(name).group}"`).join(", ");
  expect(service("broker")).toContain(`group_add: [${groups}]`);
  expect(DOCKERFILE).toContain(`USER ${role("health").user}:`);
});

it("nothing but the sockets is shared, and every service is closed", () => {
  for (const name of ["broker", "files", "console", "agent"]) expect(service(name)).toContain("<<: *closed");
  const mounts = [...COMPOSE.matchAll(/^ {6}- (\S+)$/gm)].map(([, mount = ""]) => mount);
  const shared = mounts.filter((mount, i) =>
    mounts.some((other, j) => i !== j && other.split(":")[0] === mount.split(":")[0]),
  );
  expect(new Set(shared.map((mount) => mount.split(":")[0]))).toEqual(new Set(["sockets"]));
  expect(COMPOSE).toMatch(/read_only: true\n {2}cap_drop: \[ALL\]/);
});
