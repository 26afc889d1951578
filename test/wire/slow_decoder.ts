// A second decoder, written to be obviously right and not fast, to hold the codec against. It shares no
// code and no idea with it: it decodes the text first, parses it into a tree by recursive descent over
// JSON's grammar, and only then checks the tree against the schema.

import type { Envelope } from "../../src/wire/message.ts";

type Tree =
  | { readonly type: "object"; readonly members: ReadonlyMap<string, Tree> }
  | { readonly type: "array" | "null" }
  | { readonly type: "boolean"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "number"; readonly text: string };

class Refused extends Error {}

/** Deeper than any envelope goes; a tree that is refused for this would be for its depth as well. */
const DEPTH_MAX = 8;

class Parser {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** What a sticky pattern matches here, gone over. */
  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  expect(pattern: RegExp): string {
    const found = this.match(pattern);
    if (found === undefined) throw new Refused();
    return found;
  }

  document(): Tree {
    this.match(/[ \t\r\n]*/y);
    const tree = this.value(0);
    this.expect(/[ \t\r\n]*$/y);
    return tree;
  }

  value(depth: number): Tree {
    if (depth > DEPTH_MAX) throw new Refused();
    const next = this.text[this.at];
    if (next === "{") return this.object(depth);
    if (next === "[") throw new Refused(); // there is no array in any envelope
    if (next === '"') return { type: "string", value: this.string() };
    const literal = this.match(/true|false|null/y);
    if (literal === "null") return { type: "null" };
    if (literal !== undefined) return { type: "boolean", value: literal === "true" };
    return { type: "number", text: this.expect(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y) };
  }

  object(depth: number): Tree {
    const members = new Map<string, Tree>();
    this.expect(/\{[ \t\r\n]*/y);
    if (this.match(/\}/y)) return { type: "object", members };
    do {
      const name = this.string();
      if (members.has(name)) throw new Refused();
      this.expect(/[ \t\r\n]*:[ \t\r\n]*/y);
      members.set(name, this.value(depth + 1));
      this.expect(/[ \t\r\n]*/y);
    } while (this.match(/,[ \t\r\n]*/y));
    this.expect(/\}/y);
    return { type: "object", members };
  }

  string(): string {
    this.expect(/"/y);
    let text = "";
    while (!this.match(/"/y))
      text += this.match(/\\/y) ? this.escape() : this.expect(/[^"\\\0-\x1f]{1,999}/y);
    if (/\p{Surrogate}/u.test(text)) throw new Refused();
    return text;
  }

  escape(): string {
    const unit = this.match(/u[0-9a-fA-F]{4}/y);
    if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit.slice(1), 16));
    const escapes = new Map(Object.entries({ b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }));
    const letter = this.expect(/["\\/bfnrt]/y);
    return escapes.get(letter) ?? letter;
  }
}

/** The values of an object that has exactly these members. */
function record(tree: Tree | undefined, ...names: string[]): (name: string) => Tree {
  if (tree?.type !== "object" || tree.members.size !== names.length) throw new Refused();
  const { members } = tree;
  if (!names.every((name) => members.has(name))) throw new Refused();
  return (name) => members.get(name)!;
}

function string(tree: Tree): string {
  if (tree.type !== "string") throw new Refused();
  return tree.value;
}

function boolean(tree: Tree): boolean {
  if (tree.type !== "boolean") throw new Refused();
  return tree.value;
}

function integer(tree: Tree, bits: bigint): bigint {
  if (tree.type !== "number" || !/^[0-9]+$/.test(tree.text)) throw new Refused();
  const value = BigInt(tree.text);
  if (value >= 2n ** bits) throw new Refused();
  return value;
}

function word<T extends string>(tree: Tree, list: string): T {
  const value = string(tree);
  if (!list.split(" ").includes(value)) throw new Refused();
  return value as T;
}

function request(tree: Tree) {
  const get = record(tree, "session", "call", "tool", "arguments");
  const session = string(get("session"));
  if (session.length > 128 || !/^[A-Za-z0-9][A-Za-z0-9._:@/-]*$/.test(session)) throw new Refused();
  return {
    session,
    call: integer(get("call"), 64n),
    tool: string(get("tool")),
    arguments: string(get("arguments")),
  };
}

function response(tree: Tree) {
  if (tree.type !== "object") throw new Refused();
  const status = tree.members.get("status");
  if (status?.type !== "string") throw new Refused();
  switch (status.value) {
    case "pending_approval": {
      const get = record(tree, "status", "approval", "expires");
      return {
        status: "pending_approval",
        approval: string(get("approval")),
        expires: integer(get("expires"), 64n),
      } as const;
    }
    case "result": {
      const get = record(tree, "status", "content", "class", "untrusted", "truncated");
      return {
        status: "result",
        content: string(get("content")),
        class: word<"public">(get("class"), "public internal confidential restricted"),
        untrusted: boolean(get("untrusted")),
        truncated: boolean(get("truncated")),
      } as const;
    }
    case "failed":
      return { status: "failed", message: string(record(tree, "status", "message")("message")) } as const;
    case "denied": {
      const reasons =
        "no_grant grant_expired taint_too_high denied_by_grant approval_refused approval_expired";
      const reason = word<"no_grant">(record(tree, "status", "reason")("reason"), reasons);
      return { status: "denied", reason } as const;
    }
    default:
      throw new Refused();
  }
}

function message(tree: Tree): Envelope["msg"] {
  const get = record(tree, "kind", "body");
  const kind = word<"error">(get("kind"), "tool_request tool_response error") as string;
  if (kind === "tool_request") return { kind, body: request(get("body")) };
  if (kind === "tool_response") return { kind, body: response(get("body")) };
  const error = record(get("body"), "code", "detail");
  const code = word<"internal">(error("code"), "bad_frame bad_version bad_message internal");
  return { kind: "error", body: { code, detail: string(error("detail")) } };
}

function envelope(tree: Tree): Envelope {
  const get = record(tree, "v", "id", "final", "msg");
  return {
    v: Number(integer(get("v"), 32n)),
    id: integer(get("id"), 64n),
    final: boolean(get("final")),
    msg: message(get("msg")),
  };
}

/** A body's envelope, or the outcome that a decoder must have. */
export function slowDecode(body: Uint8Array): Envelope | "json" | "bad_version" {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
    const decoded = envelope(new Parser(text).document());
    return decoded.v === 1 ? decoded : "bad_version";
  } catch (error) {
    if (error instanceof Refused || error instanceof TypeError) return "json"; // TypeError: not UTF-8
    throw error;
  }
}
