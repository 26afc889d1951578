import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { peerReader } from "../../src/host/credentials.ts";
import { type Libc, loadLibc } from "../../src/host/libc.ts";
import {
  cleanUp,
  connectAs,
  connected,
  GROUP,
  onCleanUp,
  requireRoot,
  STRANGER,
  temporaryDirectory,
} from "./listen_fixture.ts";

let libc: Libc;

beforeAll(async () => {
  requireRoot();
  const loaded = await loadLibc();
  if (loaded === undefined) throw new Error("koffi must load where the tests run");
  libc = loaded;
});
afterEach(cleanUp);

/** A server at an open socket, to be connected to by others. */
function openServer(): { readonly path: string; readonly server: Server } {
  const path = join(temporaryDirectory(), "a.sock");
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  onCleanUp(() => server.close());
  server.listen({ path, writableAll: true });
  return { path, server };
}

async function accepted(server: Server): Promise<Socket> {
  const [socket] = await once(server, "connection");
  onCleanUp(() => socket.destroy());
  return socket;
}

describe("who is on the other end", () => {
  it("is told with pid, uid, gid and supplementary groups of another user's process", async () => {
    const { path, server } = openServer();
    const child = connectAs(path, STRANGER, GROUP, [7, 11, 4_000_000_000]);
    const peer = peerReader(libc)(await accepted(server));
    expect(peer).toEqual({ pid: child.pid, uid: STRANGER, gid: GROUP, groups: [7, 11, 4_000_000_000] });
  });

  it("is told with no groups where there are none", async () => {
    const { path, server } = openServer();
    connectAs(path, STRANGER, GROUP, []);
    expect(peerReader(libc)(await accepted(server))?.groups).toEqual([]);
  });

  it("is told in full for more groups than a reader has room for at first, and right for the next peer", async () => {
    const { path, server } = openServer();
    const many = Array.from({ length: 1500 }, (_, index) => 100_000 + index);
    const read = peerReader(libc);
    connectAs(path, STRANGER, GROUP, many);
    expect(read(await accepted(server))?.groups).toEqual(many);
    connectAs(path, STRANGER + 1, GROUP, [9]);
    expect(read(await accepted(server))).toMatchObject({ uid: STRANGER + 1, groups: [9] });
  });

  it("is told of a peer that has died meanwhile", async () => {
    const { path, server } = openServer();
    const child = connectAs(path, STRANGER, GROUP, [7]);
    const socket = await accepted(server);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(peerReader(libc)(socket)).toMatchObject({ pid: child.pid, uid: STRANGER });
  });
});

describe("a peer is unknown", () => {
  it("without libc", async () => {
    const { path, server } = openServer();
    const [socket] = await Promise.all([accepted(server), connected(path)]);
    expect(peerReader(undefined)(socket)).toBeUndefined();
  });

  it("once the socket is closed, whoever has its descriptor's number now", async () => {
    const { path, server } = openServer();
    const [socket] = await Promise.all([accepted(server), connected(path)]);
    socket.destroy();
    expect(peerReader(libc)(socket)).toBeUndefined();
  });

  it("on a socket that is no Unix socket, where the kernel gives uid -1", async () => {
    const server = createServer();
    onCleanUp(() => server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address() as { readonly port: number }; // a TCP server's
    const client = connect(address.port, "127.0.0.1");
    onCleanUp(() => client.destroy());
    expect(peerReader(libc)(await accepted(server))).toBeUndefined();
  });

  it.each([
    ["SO_PEERCRED", 17],
    ["SO_PEERGROUPS", 59],
  ])("where the kernel refuses %s", async (_, refused) => {
    const { path, server } = openServer();
    const [socket] = await Promise.all([accepted(server), connected(path)]);
    const partial: Libc = {
      ...libc,
      getsockopt: (fd, level, option, into, length) =>
        option === refused ? -92 : libc.getsockopt(fd, level, option, into, length),
    };
    expect(peerReader(partial)(socket)).toBeUndefined();
  });

  it("where the kernel asks for more groups than it can have, without taking the memory for them", async () => {
    const { path, server } = openServer();
    const [socket] = await Promise.all([accepted(server), connected(path)]);
    const rooms: number[] = [];
    const greedy: Libc = {
      ...libc,
      getsockopt: (fd, level, option, into, length) => {
        if (option !== 59) return libc.getsockopt(fd, level, option, into, length);
        rooms.push(into.byteLength);
        length[0] = 0xffff_fffc;
        return -34;
      },
    };
    expect(peerReader(greedy)(socket)).toBeUndefined();
    expect(rooms).toEqual([256, 262_144]);
  });
});
