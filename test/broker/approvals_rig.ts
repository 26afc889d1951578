// A config in which humans are asked, and the short words for asking, looking and answering.

import { allow, ROLES, TOOLS } from "./configs.ts";
import type { AskOptions, Reply, RigPeer } from "./rig_peer.ts";

/** What a test's broker is, whether it has one life or several. */
export interface World {
  peer(role: string): RigPeer;
  settle(): Promise<void>;
}

export function askGrant(id: string, role: string, tools: string, more = ""): string {
  return allow(id, role, tools, more).replace('effect = "allow"', 'effect = "ask"');
}

const PAY = `[tools.pay]
role = "files"
effect = "spend"
untrusted = false
store = "bank"
destinations = ["to"]
schema.type = "object"
schema.additionalProperties = false
schema.properties.to = { type = "string" }
schema.properties.amount = { type = "number" }
schema.properties.note = { type = "string" }
[tools.look]
role = "files"
effect = "read"
untrusted = false
store = false
`;

export const ASKING_TOOLS = `${TOOLS}${PAY}`;

/** Roles: the agent, another of the same user, two operators, and the provider. */
export const ASKING_ROLES = `${ROLES}[roles.other]
users = ["agent"]
[roles.mail]
users = ["callgate-mail"]
operator = true
`;

export const OPERATORS = `${allow("operator-operates", "operator", '["callgate.*"]')}
${allow("mail-operates", "mail", '["callgate.*"]')}
`;

export const ASKING = `${ASKING_ROLES}${ASKING_TOOLS}${OPERATORS}
${allow("agent-reads", "agent", '["read", "free", "callgate.calls.*", "callgate.approvals.*"]')}
${askGrant("agent-pays", "agent", '["pay", "write", "look"]', 'reason = "money"')}
${askGrant("other-pays", "other", '["pay"]')}
`;

export const PAYMENT = { to: "bob", amount: 5 };

export interface Shown {
  readonly approval: string;
  readonly digest: string;
  readonly [name: string]: unknown;
}

export class Approver {
  readonly #world: World;
  readonly peer: RigPeer;

  constructor(world: World, role = "operator") {
    this.#world = world;
    this.peer = world.peer(role);
  }

  async list(args: object = {}): Promise<readonly Shown[]> {
    return (await this.do("list", args)).json["approvals"] as Shown[];
  }

  async show(approval: string): Promise<Shown> {
    return (await this.do("show", { approval })).json as unknown as Shown;
  }

  /** The only question that waits, whole. */
  async look(): Promise<Shown> {
    const [first, ...others] = await this.list();
    if (first === undefined || others.length > 0) throw new Error("there is not exactly one question");
    return this.show(first.approval);
  }

  async approve(shown: Shown, more: object = {}): Promise<Reply> {
    return this.do("approve", { approval: shown.approval, digest: shown.digest, ...more });
  }

  async refuse(shown: Shown, more: object = {}): Promise<Reply> {
    return this.do("refuse", { approval: shown.approval, ...more });
  }

  /** Looks at the only question and approves it. */
  async letThrough(more: object = {}): Promise<Reply> {
    return this.approve(await this.look(), more);
  }

  async do(tool: string, args: object): Promise<Reply> {
    const reply = this.peer.ask(`callgate.approvals.${tool}`, args);
    await this.#world.settle();
    return reply;
  }
}

/** Asks, and lets everything happen. */
export async function put(
  world: World,
  peer: RigPeer,
  tool: string,
  args: object | string = PAYMENT,
  options: AskOptions = {},
): Promise<Reply> {
  const reply = peer.ask(tool, args, options);
  await world.settle();
  return reply;
}
