// Who comes first after a start by a service manager. Its sockets were there all the time, so providers and callers are
// back before us, in any order, and a caller that came first would hear `no_provider` of a provider that is on its way.
// So callers wait, unread, until every role that provides has a connection, and no longer than a bound.
// Invariants: each connection is handed on once; operators and providers never wait, nor do more of a role than its limit of
// connections, which the broker then counts as ever; after `open` nobody does.

import type { Socket } from "node:net";
import type { Policy } from "../policy/policy.ts";

export type HandOn = (role: string, socket: Socket) => void;

/** A provider that runs is back much sooner; one that does not must not hold up the rest. */
const RETURN_MS_MAX = 2000;

export class ReturningRoles {
  readonly #handOn: HandOn;
  readonly #free: ReadonlySet<string>;
  /** Roles that provide and are not back. */
  readonly #awaited: Set<string>;
  readonly #limits: ReadonlyMap<string, number>;
  #held: (readonly [string, Socket])[] = [];
  #isOpen = false;

  constructor(policy: Policy, handOn: HandOn) {
    const providing = [...policy.roles.values()].filter(({ provides }) => provides.length > 0);
    this.#awaited = new Set([...policy.tools.values()].map(({ role }) => role));
    for (const { name } of providing) this.#awaited.add(name);
    const operators = [...policy.roles.values()].filter(({ operator }) => operator);
    this.#free = new Set([...this.#awaited, ...operators.map(({ name }) => name)]);
    this.#limits = new Map([...policy.roles.values()].map(({ name, limits }) => [name, limits.connections]));
    this.#handOn = handOn;
  }

  /** Begins to wait; `after` runs a task later. Without a provider there is nothing to wait for. */
  start(after: (ms: number, task: () => void) => unknown): void {
    after(RETURN_MS_MAX, () => this.open());
    if (this.#awaited.size === 0) this.open();
  }

  connected(role: string, socket: Socket): void {
    if (!this.#isOpen && !this.#free.has(role) && this.#heldOf(role) < (this.#limits.get(role) ?? 0)) {
      this.#held.push([role, socket]);
      return;
    }
    this.#handOn(role, socket);
    this.#awaited.delete(role);
    if (this.#awaited.size === 0) this.open();
  }

  #heldOf(role: string): number {
    return this.#held.filter(([name, socket]) => name === role && !socket.destroyed).length;
  }

  /** From now on nobody waits. Who has gone meanwhile is not handed on. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    const held = this.#held;
    this.#held = [];
    for (const [role, socket] of held) if (!socket.destroyed) this.#handOn(role, socket);
  }
}
