// Which user has the other end of a TCP connection of this machine: the kernel's own table of connections, which
// names the owner of each socket. Invariant: what is not found for certain is `undefined`, which nobody admits.

import { readFile } from "node:fs/promises";

/** Both ends of a connection as node:net tells them: `local` is ours. */
export interface Ends {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
}

/** How the kernel's tables are read: by name, whole. */
export type ReadTable = (name: "tcp" | "tcp6") => Promise<string>;

/** Ids that a user namespace does not know are shown as this one. */
export const OVERFLOW_UID = 65_534;
const ESTABLISHED = "01";
/** While others come and go the kernel may skip a line between two pieces of a table that is read: often, where many do. */
const LOOKS = 8;

const readProc: ReadTable = (name) => readFile(`/proc/self/net/${name}`, "latin1");

/**
 * Looks up owners. A look at the tables begins after it was asked for, and serves all that asked before it began,
 * so that many connections at once cost few looks.
 */
export class SocketOwners {
  readonly #read: ReadTable;
  #running: Promise<Tables> | undefined;
  #next: Promise<Tables> | undefined;

  constructor(read: ReadTable = readProc) {
    this.#read = read;
  }

  /** The uid; undefined where it can't be told for certain. */
  async ownerOf(ends: Ends): Promise<number | undefined> {
    for (let look = 0; look < LOOKS; look += 1) {
      const found = ownerIn(await this.#tables(), ends);
      if (found !== undefined) return found === "nobody" || found === OVERFLOW_UID ? undefined : found;
    }
    return undefined;
  }

  #tables(): Promise<Tables> {
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#begin();
    this.#next = this.#running.then(() => this.#begin());
    return this.#next;
  }

  #begin(): Promise<Tables> {
    this.#next = undefined;
    const reading = this.#readAll().finally(() => {
      if (this.#running === reading) this.#running = undefined;
    });
    this.#running = reading;
    return reading;
  }

  /** A table that can't be read has no lines: there may be no IPv6. */
  async #readAll(): Promise<Tables> {
    const [tcp, tcp6] = await Promise.all([
      this.#read("tcp").catch(() => ""),
      this.#read("tcp6").catch(() => ""),
    ]);
    return { tcp: new Table(tcp), tcp6: new Table(tcp6) };
  }
}

interface Tables {
  readonly tcp: Table;
  readonly tcp6: Table;
}

/** `nobody`: its line is there, and it is not open any more. */
type Owner = number | "nobody";

/** The owner of the peer's socket: the line that has the two ends the other way round. */
function ownerIn(tables: Tables, ends: Ends): Owner | undefined {
  const [local, remote] = [ends.localAddress, ends.remoteAddress];
  const v4 = [v4Hex(remote), v4Hex(local)] as const;
  if (v4[0] !== undefined && v4[1] !== undefined) {
    // A program that speaks IPv6 only may have come here by a mapped address.
    return (
      tables.tcp.ownerOf(v4[0], v4[1], ends) ?? tables.tcp6.ownerOf(MAPPED + v4[0], MAPPED + v4[1], ends)
    );
  }
  if (remote !== "::1" || local !== "::1") return undefined; // nobody else is listened to
  return tables.tcp6.ownerOf(LOOPBACK6, LOOPBACK6, ends);
}

/** Sixteen bytes as four numbers of the machine's own byte order, as the kernel prints them. */
const LITTLE = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const MAPPED = `0000000000000000${LITTLE ? "FFFF0000" : "0000FFFF"}`;
const LOOPBACK6 = `000000000000000000000000${LITTLE ? "01000000" : "00000001"}`;

function v4Hex(address: string): string | undefined {
  const bytes = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)?.slice(1).map(Number);
  if (bytes?.every((byte) => byte < 256) !== true) return undefined;
  return (LITTLE ? bytes.reverse() : bytes).map((byte) => hex(byte, 2)).join("");
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, "0");
}

/** `sl: LOCAL:PORT REMOTE:PORT STATE queues timer retransmits UID …`; a line that is cut is none. */
const REST = /^([0-9A-F]{2}) [0-9A-F]+:[0-9A-F]+ [0-9A-F]+:[0-9A-F]+ [0-9A-F]+ +(\d{1,10}) +\d+ \d+ /;

/**
 * One look's table. It is gone through once for all that ask about it: whoever fills it with connections, and asks by the
 * hundred, must not hold up the others.
 */
class Table {
  readonly #text: string;
  /** By our own port: where what stands behind `THEIRS:PORT OURS:PORT` begins; several: it can't be told. */
  readonly #places = new Map<string, ReadonlyMap<string, number | "several">>();

  constructor(text: string) {
    this.#text = text;
  }

  ownerOf(from: string, to: string, ends: Ends): Owner | undefined {
    const port = hex(ends.localPort, 4);
    const place = this.#to(port).get(`${from}:${hex(ends.remotePort, 4)} ${to}:${port}`);
    if (typeof place !== "number") return undefined;
    const [, state, uid] = REST.exec(this.#text.slice(place, place + 200)) ?? [];
    if (state === undefined) return undefined;
    return state === ESTABLISHED ? Number(uid) : "nobody";
  }

  #to(port: string): ReadonlyMap<string, number | "several"> {
    const known = this.#places.get(port);
    if (known !== undefined) return known;
    const places = new Map<string, number | "several">();
    const ending = `:${port} `;
    for (let at = this.#text.indexOf(ending); at >= 0; at = this.#text.indexOf(ending, at + 1)) {
      const between = this.#text.lastIndexOf(" ", at);
      const end = at + ending.length;
      const pair = this.#text.slice(this.#text.lastIndexOf(" ", between - 1) + 1, end - 1);
      places.set(pair, places.has(pair) ? "several" : end); // of a line that begins with our port it is no pair
    }
    this.#places.set(port, places);
    return places;
  }
}
