import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Ends, type ReadTable, SocketOwners } from "../../../src/roles/console/socket_owner.ts";

const HEAD =
  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

function line(from: string, to: string, state: string, uid: number): string {
  return `   7: ${from} ${to} ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 65261 1 0 20 4 30 10 -1\n`;
}

/** The console at 127.0.0.1:4711, a browser at port 40000. */
const ENDS: Ends = {
  localAddress: "127.0.0.1",
  localPort: 4711,
  remoteAddress: "127.0.0.1",
  remotePort: 40_000,
};
const CONSOLE = "0100007F:1267";
const BROWSER = "0100007F:9C40";

function owners(tcp: string, tcp6 = ""): SocketOwners {
  return new SocketOwners(async (name) => HEAD + (name === "tcp" ? tcp : tcp6));
}

describe("the owner of a connection", () => {
  it("is the uid of the browser's end, not of the console's own", async () => {
    const table = line(CONSOLE, BROWSER, "01", 7) + line(BROWSER, CONSOLE, "01", 1000);
    expect(await owners(table).ownerOf(ENDS)).toBe(1000);
  });

  it.each([
    ["has no line", ""],
    ["has only the console's own line", line(CONSOLE, BROWSER, "01", 1000)],
    ["is closing", line(BROWSER, CONSOLE, "04", 1000)],
    ["is gone, when the kernel names root", line(BROWSER, CONSOLE, "06", 0)],
    ["goes to another port", line(BROWSER, "0100007F:1268", "01", 1000)],
    ["comes from another port", line("0100007F:9C41", CONSOLE, "01", 1000)],
    ["comes from another address", line("0200007F:9C40", CONSOLE, "01", 1000)],
    ["belongs to somebody whom this namespace does not know", line(BROWSER, CONSOLE, "01", 65_534)],
    ["is listed twice", line(BROWSER, CONSOLE, "01", 1000) + line(BROWSER, CONSOLE, "01", 7)],
    ["is only called like it", line("0100007F:1267", BROWSER, "01", 1000).replace("7:", `${BROWSER}`)],
    ["has a line that is cut", line(BROWSER, CONSOLE, "01", 1000).slice(0, 80)],
  ])("is unknown where it %s", async (_, table) => {
    expect(await owners(table).ownerOf(ENDS)).toBeUndefined();
  });

  it("is told of each among many that ask at once, and of one that comes from the same port at another address", async () => {
    const others = Array.from({ length: 2000 }, (_, i) => 0x8000 + i);
    const hexOf = (port: number) => port.toString(16).toUpperCase();
    const many = others.map((port) => line(`0100007F:${hexOf(port)}`, CONSOLE, "01", port)).join("");
    const mirrored = line("0200007F:1267", CONSOLE, "01", 9);
    const table = owners(many + mirrored);
    const asked = others.map((remotePort) => table.ownerOf({ ...ENDS, remotePort }));
    expect(await Promise.all(asked)).toEqual(others);
    expect(await table.ownerOf({ ...ENDS, remoteAddress: "127.0.0.2", remotePort: 4711 })).toBe(9);
    expect(await table.ownerOf({ ...ENDS, remotePort: 4711 })).toBeUndefined();
  });

  it("is found where the browser came by an IPv6 socket", async () => {
    const mapped = "0000000000000000FFFF0000";
    const table = line(`${mapped}${BROWSER}`, `${mapped}${CONSOLE}`, "01", 1000);
    expect(await owners("", table).ownerOf(ENDS)).toBe(1000);
    const loopback = "00000000000000000000000001000000";
    const v6 = { ...ENDS, localAddress: "::1", remoteAddress: "::1" };
    expect(await owners("", line(`${loopback}:9C40`, `${loopback}:1267`, "01", 8)).ownerOf(v6)).toBe(8);
    expect(await owners(table).ownerOf(v6)).toBeUndefined();
  });

  it("is nobody where the tables can't be read, and for addresses that are not of this machine", async () => {
    const broken = new SocketOwners(() => Promise.reject(new Error("EACCES")));
    expect(await broken.ownerOf(ENDS)).toBeUndefined();
    const table = line(BROWSER, CONSOLE, "01", 1000);
    for (const remoteAddress of ["fe80::1", "1.2.3", "300.0.0.1", "", "127.0.0.1%lo"])
      expect(await owners(table).ownerOf({ ...ENDS, remoteAddress })).toBeUndefined();
  });

  it("is looked for again where the kernel left out a line", async () => {
    let looks = 0;
    const table = line(BROWSER, CONSOLE, "01", 1000);
    const skipping: ReadTable = async (name) => (name === "tcp" && ++looks === 3 ? table : "");
    expect(await new SocketOwners(skipping).ownerOf(ENDS)).toBe(1000);
    expect(looks).toBe(3);
  });

  it("is never read from a look that began before it was asked for, and many ask by one look", async () => {
    const releases: ((table: string) => void)[] = [];
    const held: ReadTable = (name) =>
      name === "tcp6" ? Promise.resolve("") : new Promise((resolve) => releases.push(resolve));
    const looking = new SocketOwners(held);
    const first = looking.ownerOf(ENDS);
    const later = Array.from({ length: 100 }, (_, i) => looking.ownerOf({ ...ENDS, remotePort: 40_000 + i }));
    expect(releases).toHaveLength(1);
    releases[0]!(line(BROWSER, CONSOLE, "01", 1000));
    expect(await first).toBe(1000);
    expect(releases).toHaveLength(2);
    releases[1]!(
      Array.from({ length: 100 }, (_, i) =>
        line(`0100007F:${(40_000 + i).toString(16).toUpperCase()}`, CONSOLE, "01", i),
      ).join(""),
    );
    expect(await Promise.all(later)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(releases).toHaveLength(2);
  });
});

async function listening(host: string): Promise<Server> {
  const server = createServer().listen(0, host);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return server;
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

async function accepted(server: Server): Promise<Ends> {
  const [socket] = (await once(server, "connection")) as [Socket];
  onTestFinished(() => void socket.destroy());
  const { localAddress, localPort, remoteAddress, remotePort } = socket;
  return { localAddress, localPort, remoteAddress, remotePort } as Ends;
}

/** Becomes that user, then connects and stays. */
function connectAs(uid: number, port: number): ChildProcess {
  const script = `
    process.setgroups([]); process.setgid(${uid}); process.setuid(${uid});
    require("node:net").connect(${port}, "127.0.0.1").resume();`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  createInterface({ input: child.stderr }).on("line", (text) => process.stderr.write(`${text}\n`));
  return child;
}

describe("on this machine", () => {
  it.each(["127.0.0.1", "::1"])("a connection of this process to %s is this user's", async (host) => {
    const server = await listening(host);
    const ends = accepted(server);
    const client = connectTcp(portOf(server), host);
    onTestFinished(() => void client.destroy());
    expect(await new SocketOwners().ownerOf(await ends)).toBe(process.getuid?.());
  });

  it.runIf(process.getuid?.() === 0)("a connection of another user is theirs", async () => {
    const server = await listening("127.0.0.1");
    const ends = accepted(server);
    connectAs(61_234, portOf(server));
    expect(await new SocketOwners().ownerOf(await ends)).toBe(61_234);
  });

  it("a connection that the client has already closed is nobody's", async () => {
    const server = await listening("127.0.0.1");
    const ends = accepted(server);
    const client = connectTcp(portOf(server), "127.0.0.1");
    const told = await ends;
    client.destroy();
    await once(client, "close");
    expect(await new SocketOwners().ownerOf(told)).toBeUndefined();
  });
});
