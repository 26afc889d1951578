import { Socket } from "node:net";
import { expect, it } from "vitest";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import { ReturningRoles } from "../../src/host/returning.ts";
import type { Policy, RolePolicy } from "../../src/policy/policy.ts";

function role(name: string, more: Partial<RolePolicy> = {}): RolePolicy {
  return {
    name,
    admits: "anyone",
    socket: { mode: 0o600, gid: undefined },
    sessions: "any",
    taintScope: "role",
    isolated: false,
    operator: false,
    broker: false,
    classMax: "restricted",
    provides: [],
    limits: ROLE_LIMITS_DEFAULT,
    ...more,
  };
}

function scene(...roles: readonly RolePolicy[]) {
  const named = new Map(roles.map((one) => [one.name, one]));
  const policy: Policy = {
    roles: named,
    tools: new Map(),
    grants: [],
    gives: [],
    allowSameUser: false,
    version: "",
  };
  const handed: string[] = [];
  let late: () => void = () => undefined;
  const returning = new ReturningRoles(policy, (name) => void handed.push(name));
  returning.start((_, task) => {
    late = task;
  });
  return {
    handed,
    returning,
    pass: () => late(),
    come: (name: string) => returning.connected(name, new Socket()),
  };
}

const AGENT = role("agent");
const FILES = role("files", { provides: ["files."] });
const MAIL = role("mail", { provides: ["mail."] });
const OPERATOR = role("operator", { operator: true });

it("more of a role than its limit of connections do not wait: the broker counts them", () => {
  const few = role("agent", { limits: { ...ROLE_LIMITS_DEFAULT, connections: 2 } });
  const { handed, come, pass } = scene(few, FILES);
  for (let i = 0; i < 5; i += 1) come("agent");
  expect(handed).toEqual(["agent", "agent", "agent"]);
  pass();
  expect(handed.length).toBe(5);
});

it("a caller that comes before the providers is heard once all of them are there", () => {
  const { handed, come } = scene(AGENT, FILES, MAIL);
  come("agent");
  come("files");
  expect(handed).toEqual(["files"]);
  come("mail");
  expect(handed).toEqual(["files", "mail", "agent"]);
  come("agent");
  expect(handed.at(-1)).toBe("agent");
});

it("a provider that stays away holds nobody up for longer than the bound", () => {
  const { handed, come, pass } = scene(AGENT, FILES);
  come("agent");
  expect(handed).toEqual([]);
  pass();
  expect(handed).toEqual(["agent"]);
  pass();
  come("files");
  expect(handed).toEqual(["agent", "files"]);
});

it("an operator never waits, and where nobody provides nobody does", () => {
  const waiting = scene(AGENT, FILES, OPERATOR);
  waiting.come("operator");
  expect(waiting.handed).toEqual(["operator"]);
  const none = scene(AGENT);
  none.come("agent");
  expect(none.handed).toEqual(["agent"]);
});

it("who has gone while it waited is handed to nobody", () => {
  const { handed, returning, pass } = scene(AGENT, FILES);
  const gone = new Socket();
  returning.connected("agent", gone);
  gone.destroy();
  pass();
  expect(handed).toEqual([]);
});
