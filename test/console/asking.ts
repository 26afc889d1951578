// A house where nearly everything is asked, for tests of how questions are shown and answered: its config, what
// serves in it, and an agent that asks.

import type { Call } from "../../src/client/call.ts";
import { type Caller, connect } from "../../src/client/caller.ts";
import { provide } from "../../src/client/provider.ts";
import { Daemon, onCleanUp, type Place } from "../daemon/daemon.ts";
import { ConsoleServer, placeWith } from "./browser.ts";

/** One user plays everybody. `boss` and `deputy` are operators; `crowd` may ask thousands. */
export const ASKING_CONFIG = `allow_same_user = true
[daemon]
drain_timeout = "1s"
sockets = "run"
state = "state"

[roles.agent]
anyone = true
[roles.crowd]
anyone = true
[roles.crowd.limits]
calls_in_flight = 10000
pending_approvals = 10000
questions_per_hour = 100000
[roles.tools]
anyone = true
class_max = "confidential"
[roles.boss]
anyone = true
operator = true
[roles.deputy]
anyone = true
operator = true

[tools.send_mail]
role = "tools"
effect = "send"
destinations = ["to"]
untrusted = false
[tools.pay]
role = "tools"
effect = "spend"
destinations = ["to"]
untrusted = false
[tools.hurry]
role = "tools"
effect = "write"
untrusted = false
[tools.read_page]
role = "tools"
effect = "read"
class = "internal"

[[grants]]
id = "mail-is-asked"
role = "agent"
tools = ["send_mail", "pay"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
reason = "It leaves the house."
[[grants]]
id = "crowd-is-asked"
role = "crowd"
tools = ["send_mail"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "hurry-is-asked"
role = "agent"
tools = ["hurry"]
effect = "ask"
taint_max = "restricted"
taint_untrusted = true
approval_ttl = "12s"
[[grants]]
id = "reading-is-free"
role = "agent"
tools = ["read_page"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "operators-operate"
role = "boss"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
[[grants]]
id = "deputies-operate"
role = "deputy"
tools = ["callgate.*"]
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
`;

export interface House {
  readonly place: Place;
  readonly daemon: Daemon;
  readonly server: ConsoleServer;
  readonly agent: Caller;
  /** Calls of `send_mail`, `pay` and `hurry` that ran, as their arguments. */
  readonly ran: Readonly<Record<string, unknown>>[];
}

/** All of it, running, with the console of `boss`. */
export async function openHouse(config: string = ASKING_CONFIG): Promise<House> {
  const place = placeWith(config);
  const daemon = await Daemon.start(place);
  const ran: Readonly<Record<string, unknown>>[] = [];
  await serve(place, ran);
  const agent = await callerOf(place, "agent");
  const server = await ConsoleServer.start(place.socket("boss"));
  return { place, daemon, server, agent, ran };
}

export async function callerOf(place: Place, role: string): Promise<Caller> {
  const caller = await connect({ to: { path: place.socket(role) } });
  onCleanUp(() => caller.close());
  return caller;
}

async function serve(place: Place, ran: Readonly<Record<string, unknown>>[]): Promise<void> {
  const runs = ({ args }: { readonly args: Readonly<Record<string, unknown>> | undefined }) => {
    ran.push(args ?? {});
    return { content: "done", untrusted: false };
  };
  const provider = await provide({
    to: { path: place.socket("tools") },
    tools: {
      send_mail: runs,
      pay: runs,
      hurry: runs,
      read_page: () => ({ content: "words of a stranger", class: "confidential", untrusted: true }),
    },
  });
  onCleanUp(() => provider.close({ drainMs: 0 }));
}

/** Asks, and answers once the question waits. */
export async function ask(
  caller: Caller,
  tool: string,
  args: Readonly<Record<string, unknown>>,
  session = "one",
): Promise<Call> {
  const call = caller.call(tool, args, { session });
  const first = await call[Symbol.asyncIterator]().next();
  if (first.done === true || first.value.status !== "pending_approval")
    throw new Error(`not asked: ${JSON.stringify(first.value)}`);
  return call;
}
