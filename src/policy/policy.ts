// The policy as the rest of the program sees it: roles, tools and grants after the config was
// checked, every default filled in, every condition and schema compiled. Immutable: a reload makes
// a new one. Look-ups go through Maps, so no name ever meets a prototype.

import type { Pattern } from "../base/ids.ts";
import type { DataClass, Labels } from "../base/labels.ts";
import type { RoleLimits } from "../base/limits.ts";
import type { Condition } from "./conditions.ts";
import type { ArgumentsSchema } from "./schema.ts";

export type ToolEffect = "read" | "write" | "send" | "spend" | "execute";

export interface RolePolicy {
  readonly name: string;
  /** Who may connect: any peer, or peers with one of these uids or gids. */
  readonly admits: "anyone" | { readonly uids: ReadonlySet<number>; readonly gids: ReadonlySet<number> };
  readonly socket: { readonly mode: number; readonly gid: number | undefined };
  /** `any`: the caller names its sessions. `opened`: only sessions that a trusted role has opened. */
  readonly sessions: "any" | "opened";
  readonly taintScope: "role" | "session";
  /** A connection serves one session only. */
  readonly isolated: boolean;
  /** Sees other roles' sessions and calls through the built-in tools that a grant gives it. */
  readonly operator: boolean;
  /** Its provider answers `pending_approval` and `denied` are passed on (it is itself a broker). */
  readonly broker: boolean;
  /** The highest class that its results may carry. */
  readonly classMax: DataClass;
  /** Prefixes (without `*`) under which it may announce tools. */
  readonly provides: readonly string[];
  readonly limits: RoleLimits;
}

export interface ToolPolicy {
  readonly name: string;
  /** The provider role; undefined for the broker's own tools. */
  readonly role: string;
  readonly description: string | undefined;
  readonly effect: ToolEffect;
  /** Joined into every result's labels. */
  readonly floor: Labels;
  readonly timeoutMs: number;
  /** Bytes of UTF-8 of all parts of a result's content together. */
  readonly resultBytesMax: number;
  readonly onOversize: "cut" | "fail";
  readonly schema: ArgumentsSchema | undefined;
  /** Arguments that say where something goes. */
  readonly destinations: readonly string[];
  /** Name of the store whose taint it joins and carries; undefined where the owner wrote `store = false`. */
  readonly store: string | undefined;
  /** Name of the argument that tells a store's items apart. */
  readonly storeKey: string | undefined;
  /** `memory`: calls of it are not written to disk (reads only); taint and audit are. */
  readonly record: "durable" | "memory";
  /** Top-level arguments whose values the audit may show; all else is digest and length. */
  readonly auditArguments: readonly string[];
}

/** Defaults of a grant's question (config: approval_ttl, refuse_for). */
export const QUESTION_DEFAULTS = { approvalTtlMs: 900_000, refuseForMs: 3_600_000 } as const;

export type GrantEffect = "allow" | "ask" | "deny";

export interface Grant {
  readonly id: string;
  readonly role: string;
  readonly tools: readonly Pattern[];
  /** Empty: all. */
  readonly sessions: readonly Pattern[];
  readonly effect: GrantEffect;
  readonly when: Condition | undefined;
  /** The session's taint up to which it holds. On a deny: undefined. */
  readonly taintMax: Labels | undefined;
  readonly aboveTaint: "deny" | "ask";
  /** Milliseconds since the epoch; undefined: never. On a deny: undefined. */
  readonly expiresAtMs: number | undefined;
  /** How many calls it lets through, in each period (undefined: ever). Used up it counts as expired. */
  readonly maxCalls: { readonly calls: number; readonly perMs: number | undefined } | undefined;
  /** How long a question that it asks stays open. */
  readonly approvalTtlMs: number;
  /** Whether an approval of its question may be remembered. */
  readonly remember: boolean;
  /** How long an equal call of the role stays refused without asking again. */
  readonly refuseForMs: number;
  /** The ask grant that a remembered approval stands in for; undefined on every other grant. */
  readonly remembers: string | undefined;
  /** Only calls with this `equalDigest`; undefined: whatever the arguments are. Only with `remembers`. */
  readonly equal: string | undefined;
  /** The owner's words, shown to a caller that it denies. */
  readonly reason: string | undefined;
}

/** What a role may give others at run time with `callgate.grants.add`. A deny needs none of these. */
export interface Giving {
  /** Who gives. */
  readonly role: string;
  /** To whom. */
  readonly to: readonly string[];
  readonly tools: readonly Pattern[];
  /** A given grant's taint stays within this. */
  readonly taintMax: Labels;
  /** A given grant expires within this. */
  readonly longestMs: number;
  /** A given grant has a condition or asks (`ask` only), or may allow outright. */
  readonly effects: readonly ("allow" | "ask")[];
}

export interface Policy {
  readonly roles: ReadonlyMap<string, RolePolicy>;
  readonly tools: ReadonlyMap<string, ToolPolicy>;
  /** In the order of the config. */
  readonly grants: readonly Grant[];
  readonly gives: readonly Giving[];
  /** A uid may open sessions and approve for a role that it itself runs. */
  readonly allowSameUser: boolean;
  /** SHA-256 of the config file, hex: names the policy in records. */
  readonly version: string;
}
