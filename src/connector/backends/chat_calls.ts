// Tool calls of a Chat Completions stream, put together from pieces. A piece names its call by index; servers that
// leave it out, or give all calls the same, tell calls apart by a new id, or by a name on a call that has one. Pure.

import { TextPieces } from "./text_pieces.ts";
import { type JsonRecord, member, recordMember, textMember } from "./unknown_json.ts";

export interface ChatCall {
  /** Undefined: the server gave none. */
  readonly id: unknown;
  readonly name: string;
  /** Of the arguments. */
  readonly pieces: TextPieces;
}

interface OpenCall {
  id: string | undefined;
  name: string;
  readonly pieces: TextPieces;
}

/** More than any model makes at once. */
const OPEN_MAX = 1000;

export class ChatCalls {
  #calls: OpenCall[] = [];
  /** The last of each index: a piece must not look through all that are open. */
  #byIndex = new Map<unknown, OpenCall>();

  /** How many bytes it adds; undefined: it belongs to no call and begins none. */
  take(piece: JsonRecord | undefined): number | undefined {
    const call = this.#callOf(piece);
    if (call === undefined) return undefined;
    const id = textMember(piece, "id") ?? "";
    if (id !== "") call.id = id;
    const asked = recordMember(piece, "function");
    const name = textMember(asked, "name") ?? "";
    if (name !== "") call.name = name;
    const text = argumentsOf(asked);
    if (text !== "") call.pieces.push(text);
    return Buffer.byteLength(text) + name.length + id.length;
  }

  /** In the order in which they began; after that none is open. */
  close(): readonly ChatCall[] {
    const calls = this.#calls;
    this.#calls = [];
    this.#byIndex = new Map();
    return calls;
  }

  #callOf(piece: JsonRecord | undefined): OpenCall | undefined {
    const index = member(piece, "index");
    const id = textMember(piece, "id") ?? "";
    const name = textMember(recordMember(piece, "function"), "name") ?? "";
    const unnumbered = index === undefined || index === null;
    const found = unnumbered ? this.#calls.at(-1) : this.#byIndex.get(index);
    if (found !== undefined && !isAnother(found, index, id, name)) return found;
    if (name === "" || this.#calls.length >= OPEN_MAX) return undefined;
    const call: OpenCall = { id: undefined, name: "", pieces: new TextPieces() };
    this.#calls.push(call);
    this.#byIndex.set(index, call);
    return call;
  }
}

/** Some servers repeat id and name on every piece: the same ones at one index are no other call. */
function isAnother(call: OpenCall, index: unknown, id: string, name: string): boolean {
  if (id !== "" && call.id !== undefined) return id !== call.id;
  if (name === "" || call.name === "") return false;
  return typeof index !== "number" || name !== call.name;
}

/** Some servers give the object itself. */
function argumentsOf(asked: JsonRecord | undefined): string {
  const given = member(asked, "arguments");
  if (typeof given === "string") return given;
  return typeof given === "object" && given !== null ? JSON.stringify(given) : "";
}
