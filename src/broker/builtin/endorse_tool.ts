// `callgate.sessions.endorse`: an operator lowers a taint, by the version that it saw and with its reason. Never
// of its own role or user, nor of a store that such a role serves.

import { type CallFault, fault, ok, type Result } from "../../base/faults.ts";
import { DATA_CLASSES, type Labels } from "../../base/labels.ts";
import type { RolePolicy } from "../../policy/policy.ts";
import { type EndorseRefusal, type EndorseTarget, LOWERED_MAX } from "../../session/endorsement.ts";
import { itemName } from "../../session/taint.ts";
import { callFault, NOTHING_RAN } from "../answer.ts";
import type { BuiltinCall, BuiltinOutcome, Core } from "../core.ts";
import { actorOf } from "../live.ts";
import { flag, integer, objectSchema, SESSION, text } from "./arguments.ts";
import { type BuiltinSource, changed } from "./builtin.ts";
import { actsForItself, namedRole } from "./visibility.ts";

const REASON_CHARS_MAX = 1024;

function endorse(core: Core, call: BuiltinCall): BuiltinOutcome {
  const found = targetOf(core, call);
  if (!found.ok) return found;
  const target = found.value;
  const read = readLowering(call);
  if (typeof read === "string") return bad(read);
  const { version, labels, reason } = read;
  const by = actorOf(call.peer);
  const endorsement = core.sessions.endorse({ target, version, labels, by, reason });
  if (typeof endorsement === "string") return fault(REFUSALS[endorsement]);
  const { changes, settled, remaining } = endorsement;
  const content = {
    /** Whose taint it is that was lowered: in role scope the role's, whatever session was named. */
    scope: target.of,
    taint: endorsement.taint,
    version: endorsement.version,
    remaining,
  };
  return changed(content, {
    changes,
    settled: (written) => {
      settled(written);
      if (written) core.log("warn", "taint.endorsed", { ...logged(target), ...labels, by: by.role });
    },
  });
}

function readLowering({ args }: BuiltinCall): { version: number; labels: Labels; reason: string } | string {
  const version = integer(args, "version");
  const dataClass = DATA_CLASSES.find((one) => one === text(args, "class"));
  const untrusted = flag(args, "untrusted");
  const reason = text(args, "reason")?.trim() ?? "";
  if (version === undefined) return "`version` is none that `callgate.sessions.show` gave";
  if (dataClass === undefined || untrusted === undefined)
    return "Say `class` and `untrusted`: the labels that it is lowered to";
  if (reason === "" || reason.length > REASON_CHARS_MAX)
    return `\`reason\` must say why, in at most ${REASON_CHARS_MAX} characters`;
  return { version, labels: { class: dataClass, untrusted }, reason };
}

/** What is to be lowered. The faults tell a role that is no operator nothing about other roles. */
function targetOf(core: Core, call: BuiltinCall): Result<EndorseTarget, CallFault> {
  const named = namedRole(core, call);
  if (!named.ok) return named;
  if (!call.role.operator) return bad("Only an operator endorses");
  const role = named.value;
  if (actsForItself(core, call, role)) return bad("Nobody endorses for their own role or user");
  const store = text(call.args, "store");
  const session = text(call.args, "session");
  if (store !== undefined) {
    if (session !== undefined) return bad("Name a session or a store, not both");
    return storeTarget(core, call, role, store);
  }
  if (text(call.args, "item") !== undefined) return bad("`item` goes with `store`");
  if (session !== undefined && core.sessions.find(role.name, session) === undefined)
    return bad("That role has no such session");
  if (session !== undefined && role.taintScope === "session")
    return ok({ of: "session", role: role.name, session });
  return ok({ of: "role", role: role.name, leftovers: role.taintScope === "role" });
}

/** Every role that serves the store is looked at, not the named one alone. */
function storeTarget(
  core: Core,
  call: BuiltinCall,
  role: RolePolicy,
  store: string,
): Result<EndorseTarget, CallFault> {
  const { roles, tools } = core.runtime.policy;
  const providers = new Set(
    [...tools.values()].filter((tool) => tool.store === store).map((tool) => tool.role),
  );
  if (store === role.name) providers.add(store); // of announced tools
  if (!providers.has(role.name)) return bad("That role serves no such store");
  for (const name of providers) {
    const provider = roles.get(name);
    if (provider === undefined || actsForItself(core, call, provider))
      return bad("Nobody endorses a store that their own role or user serves");
  }
  const named = text(call.args, "item");
  const item = named === undefined ? undefined : itemName(named);
  if (named !== undefined && item === undefined) return bad("`item` is no name of an item");
  return ok({ of: "store", store, item });
}

function logged(target: EndorseTarget) {
  if (target.of === "store") return { store: target.store };
  return { role: target.role, session: target.of === "session" ? target.session : undefined };
}

const REFUSALS: Readonly<Record<EndorseRefusal, CallFault>> = {
  unknown: refusal("bad_arguments", "Nothing tainted is known of that session, store or item"),
  changed: refusal("conflict", "The taint is not in the version that you saw: look at it again"),
  not_covered: refusal(
    "bad_arguments",
    "An endorsement only lowers, and the taint does not cover these labels",
  ),
  not_lower: refusal("bad_arguments", "The taint is not above these labels: there is nothing to lower"),
  above: refusal(
    "bad_arguments",
    "The taint of the whole role (or store) is above these labels, and what is in it is never below that: endorse the role (or the store) first",
  ),
  busy: refusal("conflict", "Another endorsement of it is being written: look at it again"),
};

function refusal(code: "bad_arguments" | "conflict", sentence: string): CallFault {
  return callFault(code, `${sentence}. ${NOTHING_RAN}`);
}

function bad(sentence: string): { readonly ok: false; readonly fault: CallFault } {
  return { ok: false, fault: refusal("bad_arguments", sentence) };
}

export const ENDORSE_TOOLS: readonly BuiltinSource[] = [
  {
    name: "callgate.sessions.endorse",
    description: `Lowers the taint of a role, a session or a store, by the version that was seen. At most ${LOWERED_MAX} single sessions or items at once: \`remaining\` says how many are left.`,
    effect: "write",
    schema: objectSchema(
      {
        role: { type: "string", description: "The role, or the role that serves the store." },
        session: SESSION,
        store: { type: "string", description: "A store, in place of a session." },
        item: { type: "string", description: "One item of that store; left out: all of it." },
        version: { type: "integer", description: "As `callgate.sessions.show` shows it." },
        class: { type: "string", enum: DATA_CLASSES, description: "Lowered to this class." },
        untrusted: { type: "boolean", description: "Whether untrusted content is still assumed in it." },
        reason: { type: "string", description: "Why; kept in the audit." },
      },
      "role",
      "version",
      "class",
      "untrusted",
      "reason",
    ),
    run: endorse,
  },
];
