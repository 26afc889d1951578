// What somebody could do who has taken over a unit's process: tried from inside of it. Prints one JSON line: what of each
// attempt came, "yes" or the code of what stood in its way. insider.mjs PATH...: files and directories to read.

import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";

function tried(action) {
  try {
    action();
    return "yes";
  } catch (error) {
    return error.code ?? error.message;
  }
}

function connected(options) {
  return new Promise((resolve) => {
    const socket = connect(options, () => resolve("yes"));
    socket.on("error", (error) => resolve(error.code));
  });
}

function bound(type) {
  return new Promise((resolve) => {
    try {
      const socket = createSocket(type);
      socket.on("error", (error) => resolve(error.code));
      socket.bind(0, () => resolve("yes"));
    } catch (error) {
      resolve(error.code ?? error.message);
    }
  });
}

const run = (program) => {
  const { error, status } = spawnSync(program, ["--version"]);
  return error === undefined ? `ran (${status})` : error.code;
};
const read = (path) =>
  tried(() =>
    statSync(path).isDirectory() ? readdirSync(path).length > 0 || fail("EMPTY") : readFileSync(path),
  );
function fail(code) {
  throw Object.assign(new Error(code), { code });
}

const told = {
  uid: process.getuid(),
  tcp: await connected({ host: "127.0.0.1", port: 22 }),
  tcp6: await connected({ host: "::1", port: 22 }),
  udp: await bound("udp4"),
  exec: { true: run("/bin/true"), sh: run("/bin/sh"), python: run("/usr/bin/python3") },
  write: Object.fromEntries(
    ["/etc/x", "/tmp/../x", "/usr/x", "/run/callgate/x.sock"].map((path) => [
      path,
      tried(() => writeFileSync(path, "x")),
    ]),
  ),
  read: Object.fromEntries(process.argv.slice(2).map((path) => [path, read(path)])),
  others: readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).length,
};
process.stdout.write(`${JSON.stringify(told)}\n`);
process.exit(0);
