import { describe, expect, it } from "vitest";
import { CLEAN, type Labels } from "../../src/base/labels.ts";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import type { RolePolicy } from "../../src/policy/policy.ts";
import { IDS_MAX } from "../../src/session/role_sessions.ts";
import { type Session, SessionTable } from "../../src/session/sessions.ts";
import type { StoredSession } from "../../src/store/records.ts";

const OPERATOR = { role: "operator", uid: 7 };
const SECRET: Labels = { class: "restricted", untrusted: true };
const IDLE_MS = 1000;

function role(more: Partial<RolePolicy> = {}): RolePolicy {
  return {
    name: "agent",
    admits: "anyone",
    socket: { mode: 0o600, gid: undefined },
    sessions: "any",
    taintScope: "role",
    isolated: false,
    operator: false,
    broker: false,
    classMax: "restricted",
    provides: [],
    limits: { ...ROLE_LIMITS_DEFAULT, sessions: 2 },
    ...more,
  };
}

function record(id: string, openedBy: string, expiresAtMs = 100) {
  return { role: "agent", id, request: "words", requestLabels: CLEAN, openedBy, expiresAtMs };
}

function opened(sessions: SessionTable, id: string, openedBy: string, nowMs = 0) {
  const session = sessions.open(record(id, openedBy, nowMs + 100), 2, nowMs);
  if (typeof session !== "string") sessions.opened(session, true);
  return session;
}

describe("ids of ended sessions", () => {
  it("are never forgotten: a hijacked opener runs into its own bound, also after a restart, and others go on", () => {
    const stored: StoredSession[] = [];
    for (let i = 0; i < IDS_MAX; i += 1)
      stored.push({ session: { ...record(`i${i}`, "hijacked"), request: undefined }, closed: true });
    const sessions = new SessionTable();
    const restored = sessions.restore({ sessions: stored, taints: [], frozen: [] }, 0);
    expect(restored).toMatchObject({ sessions: IDS_MAX, changes: [] });
    expect(opened(sessions, "more", "hijacked")).toBe("used_up");
    for (const id of ["i0", `i${IDS_MAX - 1}`]) expect(opened(sessions, id, "honest")).toBe("used");
    expect(opened(sessions, "more", "honest")).toMatchObject({ state: "open" });
  });

  it("are not used up by an opening that could not be written", () => {
    const sessions = new SessionTable();
    const session = sessions.open(record("a", "frontend"), 2, 0) as Session;
    sessions.opened(session, false);
    expect(opened(sessions, "a", "frontend")).toMatchObject({ state: "open" });
  });

  it("of expired sessions are told once, to be written down", () => {
    const sessions = new SessionTable();
    for (const id of ["a", "b"]) opened(sessions, id, "frontend");
    sessions.close(sessions.find("agent", "b") as Session, OPERATOR);
    expect(sessions.expiries("agent", 99)).toEqual([]);
    expect(sessions.expiries("agent", 100)).toMatchObject([
      { kind: "session_closed", role: "agent", id: "a", by: { role: "[host]" } },
    ]);
    expect(sessions.expiries("agent", 101)).toEqual([]);
    expect(sessions.find("agent", "a")).toMatchObject({ state: "expired", request: undefined });
  });

  it("stay used where a reload lets the role name its sessions itself", () => {
    const sessions = new SessionTable();
    opened(sessions, "a", "frontend");
    sessions.close(sessions.find("agent", "a") as Session, OPERATOR);
    for (let i = 0; i < 10; i += 1) sessions.use(role(), `n${i}`, i * 2 * IDLE_MS, IDLE_MS);
    expect(sessions.use(role(), "a", 30 * IDLE_MS, IDLE_MS)).toBe("ended");
  });
});

describe("a session that is forgotten", () => {
  it("leaves its taint with its role, and a frozen one is not", () => {
    const sessions = new SessionTable();
    const idle = sessions.use(role(), "idle", 0, IDLE_MS) as Session;
    sessions.use(role(), "frozen", 0, IDLE_MS);
    sessions.freeze("agent", "frozen", true);
    sessions.raise(role({ taintScope: "session" }), idle, SECRET, {
      role: "agent",
      session: "idle",
      call: 1n,
    });
    const next = sessions.use(role(), "next", 2 * IDLE_MS, IDLE_MS) as Session;
    expect([sessions.find("agent", "idle"), sessions.taint(next)]).toEqual([undefined, SECRET]);
    expect(sessions.use(role(), "frozen", 2 * IDLE_MS, IDLE_MS)).toBe("frozen");
  });

  it("after its end is still known by what it was given", () => {
    const sessions = new SessionTable();
    const first = opened(sessions, "first", "frontend") as Session;
    const scoped = role({ sessions: "opened", taintScope: "session" });
    sessions.raise(scoped, first, SECRET, { role: "agent", session: "first", call: 1n });
    for (let i = 0; i < 1100; i += 1) {
      const nowMs = (i + 1) * 200;
      opened(sessions, `s${i}`, "frontend", nowMs);
      sessions.expiries("agent", nowMs + 100);
    }
    expect(sessions.find("agent", "first")).toBeUndefined();
    expect(sessions.taintOf("agent", "first")).toEqual(SECRET);
    expect(sessions.roleTaint("agent")).toEqual(CLEAN);
    sessions.widenToRole("agent");
    expect(sessions.roleTaint("agent")).toEqual(SECRET);
  });
});

describe("a freeze", () => {
  it("of an id that nobody has used yet waits for it, however it comes into use", () => {
    const sessions = new SessionTable();
    for (const id of ["named", "opened"]) sessions.freeze("agent", id, true);
    expect(sessions.use(role(), "named", 0, IDLE_MS)).toBe("frozen");
    opened(sessions, "opened", "frontend");
    expect(sessions.use(role({ sessions: "opened" }), "opened", 0, IDLE_MS)).toBe("frozen");
    sessions.freeze("agent", "named", false);
    expect(sessions.use(role(), "named", 0, IDLE_MS)).toMatchObject({ frozen: false });
    expect(sessions.frozenIds("agent")).toEqual(["opened"]);
  });
});
