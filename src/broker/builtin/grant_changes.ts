// `callgate.grants.add|revoke`: grants that come and go at run time. Nobody adds for their own role or user,
// the broker's own tools are never given, and nobody gives more than the config lets them.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { DATA_CLASSES } from "../../base/labels.ts";
import type { Condition } from "../../policy/conditions.ts";
import { givingFault } from "../../policy/giving.ts";
import type { Grant } from "../../policy/policy.ts";
import type { Change } from "../../store/records.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { actorOf } from "../live.ts";
import { type HeldGrant, newGrantId } from "../runtime_grants.ts";
import { type MemberSchema, objectSchema, text } from "./arguments.ts";
import { type BuiltinSource, changed } from "./builtin.ts";
import { type GivenGrant, openSchema, readGiven } from "./given_grant.ts";
import { actsForItself } from "./visibility.ts";

async function add(core: Core, call: BuiltinCall): Promise<BuiltinOutcome> {
  const given = readGiven(call.args);
  if (!given.ok) return bad(given.fault);
  const early = mayNotGive(core, call, given.value); // before its condition costs anything
  if (early !== undefined) return bad(early);
  const when = await compiledWhen(core, given.value.when);
  if (!when.ok) return when;
  // Meanwhile a reload may have changed what holds.
  const refused = mayNotGive(core, call, given.value) ?? meansNothing(core, given.value);
  if (refused !== undefined) return bad(refused);
  const nowMs = core.clock.nowMs();
  const grant = grantOf(core, given.value, when.value, nowMs);
  const unfit = core.grants.refusal(grant, nowMs);
  const code = core.grants.find(grant.id) === undefined ? "capacity" : "conflict";
  if (unfit !== undefined) return fault(callFault(code, `${unfit}. ${NOTHING_RAN}`));
  const labels = core.sessions.taint(call.session);
  const origin = { by: actorOf(call.peer), labels, addedAtMs: nowMs, approval: undefined };
  const content = { grant: grant.id, expires_at_ms: grant.expiresAtMs ?? null };
  return changed(content, core.grants.add(grant, origin));
}

/** Who gives, and to whom. What is said of a foreign role is the same whether there is one of that name. */
function mayNotGive(core: Core, call: BuiltinCall, given: GivenGrant): string | undefined {
  const { policy } = core.runtime;
  const giver = policy.roles.get(call.role.name);
  const role = policy.roles.get(given.role);
  if (giver === undefined) return "The caller's role is not in the config any more";
  if (role === undefined && giver.operator) return "There is no role of that name";
  const narrowing = given.effect === "deny" && giver.operator;
  const beyond = narrowing ? undefined : givingFault(policy.gives, giver.name, given);
  if (beyond !== undefined) return beyond;
  if (role === undefined) return "There is no role of that name";
  return actsForItself(core, call, role) ? "Nobody adds a grant for their own role or user" : undefined;
}

/** A grant that could never mean what its adder wrote. */
function meansNothing(core: Core, given: GivenGrant): string | undefined {
  const { policy } = core.runtime;
  const missing = given.tools.find(
    (name) => !name.endsWith("*") && core.definitions.resolve(policy, name) === undefined,
  );
  if (missing !== undefined) return `There is no tool \`${missing}\` in service`;
  if (given.sessions.length > 0 && policy.roles.get(given.role)?.sessions === "any")
    return "That role names its own sessions, so a grant can't tell them apart; leave out `sessions`";
  const conditional = given.effect === "allow" && given.when !== undefined;
  return conditional ? openSchema(core, given.tools) : undefined;
}

async function compiledWhen(
  core: Core,
  when: string | undefined,
): Promise<Result<Condition | undefined, CallFault>> {
  if (when === undefined) return ok(undefined);
  const compiled = (await core.loadConditions()).compile(when);
  return compiled.ok ? compiled : bad(`The condition does not compile: ${compiled.fault}`);
}

function grantOf(core: Core, given: GivenGrant, when: Condition | undefined, nowMs: number): Grant {
  const { lastsMs, id = newGrantId("runtime", core.random), ...rest } = given;
  return { ...rest, id, when, expiresAtMs: lastsMs === undefined ? undefined : nowMs + lastsMs };
}

function revoke(core: Core, call: BuiltinCall): BuiltinOutcome {
  const id = text(call.args, "grant") ?? "";
  const held = core.grants.find(id);
  const refused = mayNotRevoke(core, call, id, held);
  if (refused !== undefined) return bad(refused);
  const coming = held?.state === "adding" || held?.state === "leaving";
  if (coming)
    return fault(callFault("conflict", `That grant is just being changed; look again. ${NOTHING_RAN}`));
  const leaving = core.grants.remove(id, actorOf(call.peer));
  const ended = core.grants.removeEnded(core.clock.nowMs());
  return changed(
    { grant: id, revoked: true },
    {
      changes: [...leaving.changes, ...reasonGiven(call, id), ...ended.changes],
      settled: (written) => {
        leaving.settled(written);
        ended.settled(written);
      },
    },
  );
}

/** A role may give back what it was allowed; what narrows it only somebody else may take away. */
function mayNotRevoke(
  core: Core,
  call: BuiltinCall,
  id: string,
  held: HeldGrant | undefined,
): string | undefined {
  const own = held?.grant.role === call.role.name && held.grant.effect === "allow";
  if (!call.role.operator)
    return own ? undefined : "There is no grant of that id that the caller may give back";
  if (held === undefined) {
    const configured = core.runtime.policy.grants.some((grant) => grant.id === id);
    if (!configured) return "There is no grant of that id";
    return "That grant stands in the config, which alone holds it; remove it there and reload";
  }
  const role = core.runtime.policy.roles.get(held.grant.role);
  const freesItself = held.grant.effect !== "allow" && role !== undefined && actsForItself(core, call, role);
  return freesItself ? "Nobody revokes what narrows their own role or user" : undefined;
}

const REASON_CHARS_MAX = 1024;

function reasonGiven(call: BuiltinCall, id: string): readonly Change[] {
  const reason = text(call.args, "reason")?.slice(0, REASON_CHARS_MAX).toWellFormed();
  if (reason === undefined || reason === "") return [];
  const by = actorOf(call.peer);
  const record = { kind: "change", what: "revocation reason", by, subject: `${id}: ${reason}` } as const;
  return [{ kind: "audit", record }];
}

function bad(sentence: string) {
  return fault(callFault("bad_arguments", `${sentence}. ${NOTHING_RAN}`));
}

const TEXTS = { type: "string" };
const MEMBERS: Readonly<Record<string, MemberSchema>> = {
  id: { type: "string", description: "Its id, put after `runtime.`; left out: the broker makes one." },
  role: { type: "string", description: "The role that it serves." },
  tools: { type: "array", items: TEXTS, description: "Names of tools, or prefixes that end in `*`." },
  sessions: {
    type: "array",
    items: TEXTS,
    description: "Session ids, or prefixes that end in `*`; left out: all.",
  },
  effect: {
    type: "string",
    enum: ["allow", "ask", "deny"],
    description: "An ask that has ended denies, until it is revoked.",
  },
  when: { type: "string", description: "A CEL condition." },
  taint_max: { type: "string", enum: DATA_CLASSES, description: "The class up to which it holds." },
  taint_untrusted: { type: "boolean", description: "Whether it holds after something untrusted was read." },
  above_taint: { type: "string", enum: ["deny", "ask"], description: "What it does above its taint." },
  expires_in_seconds: { type: "integer", description: "How long it holds." },
  max_calls: { type: "integer", description: "How many calls it lets through." },
  max_calls_per_seconds: { type: "integer", description: "In each such period; left out: ever." },
  reason: { type: "string", description: "Why; shown to a caller that it denies." },
};

export const GRANT_CHANGE_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.grants.add",
    description: "Gives a role a grant at run time, within what the config lets the caller give.",
    effect: "write",
    schema: objectSchema(MEMBERS, "role", "tools", "effect", "reason"),
    run: add,
  },
  {
    name: "callgate.grants.revoke",
    description: "Takes a grant away that was added or remembered at run time.",
    effect: "write",
    schema: objectSchema(
      {
        grant: { type: "string", description: "The grant's id." },
        reason: { type: "string", description: "Why; kept in the audit." },
      },
      "grant",
    ),
    run: revoke,
  },
];
