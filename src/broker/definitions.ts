// Definitions of announced tools: what was pinned, and what waits to be looked at. An announced
// definition serves only where its tool is named in the config or an operator accepted it; then it is
// pinned, and every other definition of that name is out of service.

import { BUILTIN_PREFIX, isToolName } from "../base/ids.ts";
import { type Json, type JsonObject, jsonText, jsonTextInOrder, parseJsonObject } from "../base/json.ts";
import { ARGUMENTS_LIMITS } from "../base/limits.ts";
import type { Digest } from "../base/ports.ts";
import type { Policy, RolePolicy, ToolPolicy } from "../policy/policy.ts";
import { type ArgumentsSchema, compileArgumentsSchema } from "../policy/schema.ts";
import type { PinRecord } from "../store/records.ts";

export interface Definition {
  readonly tool: string;
  readonly role: string;
  readonly digest: string;
  /** Canonical JSON of what was announced. */
  readonly text: string;
  readonly description: string | undefined;
  readonly schema: ArgumentsSchema | undefined;
}

/** Who accepted what the config names: nobody has looked at the provider's words. */
export const CONFIG = "[config]";

export interface Pin {
  readonly definition: Definition;
  /** CONFIG (no role can have that name), or the operator's role. */
  readonly acceptedBy: string;
}

/** A tool as calls find it. */
export interface Resolved {
  readonly tool: ToolPolicy;
  /** Set where the tool was announced: only connections that announced exactly this serve it. */
  readonly pin: Pin | undefined;
}

/** Definitions of one role that wait for an operator. */
const WAITING_MAX = 256;
const DEFINITION_CHARS_MAX = 65_536;
const DESCRIPTION_CHARS_MAX = 8192;
const ANNOUNCED_TIMEOUT_MS = 60_000;
const ANNOUNCED_RESULT_BYTES_MAX = 262_144;

export class Definitions {
  readonly #digest: Digest;
  readonly #pins = new Map<string, Pin>();
  /** Announced, not in service: by tool, the latest. */
  readonly #waiting = new Map<string, Definition>();

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  /**
   * What was pinned before a restart. A pin whose text can't be read any more stays a pin that nobody's
   * announcement equals: the tool is out of service until an operator accepts what its provider announces.
   */
  async restore(pins: Iterable<PinRecord>): Promise<{ restored: number; unreadable: readonly string[] }> {
    const unreadable: string[] = [];
    for (const pin of pins) {
      const definition = await restoredDefinition(pin, this.#digest);
      if (definition.digest === UNREADABLE) unreadable.push(pin.tool);
      this.#pins.set(pin.tool, { definition, acceptedBy: pin.acceptedBy });
    }
    return { restored: this.#pins.size, unreadable };
  }

  resolve(policy: Policy, name: string): Resolved | undefined {
    const pin = this.#pins.get(name);
    const configured = policy.tools.get(name);
    if (configured !== undefined) {
      const own = pin !== undefined && pin.definition.role === configured.role ? pin : undefined;
      if (own === undefined || configured.schema !== undefined) return { tool: configured, pin: own };
      return { tool: { ...configured, schema: own.definition.schema }, pin: own };
    }
    if (pin === undefined || pin.acceptedBy === CONFIG) return undefined;
    const role = policy.roles.get(pin.definition.role);
    if (role === undefined || !mayAnnounce(policy, role, name)) return undefined;
    return { tool: announcedTool(pin.definition), pin };
  }

  /** Reads what a provider announced for one tool. The fault is for the provider; nothing is kept of it. */
  async read(policy: Policy, role: RolePolicy, announced: Json): Promise<Definition | string> {
    if (!(announced instanceof Map)) return "a definition must be an object";
    const members: JsonObject = announced;
    const name = members.get("name");
    if (typeof name !== "string" || !isToolName(name))
      return "`name` must be a tool name (lower-case letters, digits, `_`, `-`, `.`)";
    if (!mayAnnounce(policy, role, name))
      return "the name is not under a prefix that the role's `provides` names";
    const description = members.get("description");
    if (
      description !== undefined &&
      (typeof description !== "string" || description.length > DESCRIPTION_CHARS_MAX)
    ) {
      return `\`description\` must be a string of at most ${DESCRIPTION_CHARS_MAX} characters`;
    }
    // First as it was sent: the canonical form of `1e308` is sixty times as long.
    const tooLong = jsonTextInOrder(announced).length > DEFINITION_CHARS_MAX;
    const text = tooLong ? "" : jsonText(announced);
    if (tooLong || text.length > DEFINITION_CHARS_MAX)
      return `a definition must be at most ${DEFINITION_CHARS_MAX} characters of JSON`;
    const schema = await readSchema(members.get("schema"));
    if (typeof schema === "string") return schema;
    return { tool: name, role: role.name, digest: this.#digest(text), text, description, schema };
  }

  /**
   * Takes an announced definition: in service, to be pinned (the config names it), waiting for an operator,
   * or held back because another is pinned.
   */
  offer(policy: Policy, definition: Definition): "in_service" | "pinnable" | "waiting" | "changed" {
    const { tool } = definition;
    const pin = this.#pins.get(tool);
    if (pin !== undefined && pin.definition.role === definition.role) {
      if (pin.definition.digest === definition.digest) {
        this.#waiting.delete(tool);
        return "in_service";
      }
      this.#wait(definition);
      return "changed";
    }
    if (policy.tools.get(tool)?.role === definition.role) return "pinnable";
    this.#wait(definition);
    return "waiting";
  }

  waiting(tool: string): Definition | undefined {
    return this.#waiting.get(tool);
  }

  pinned(tool: string): Pin | undefined {
    return this.#pins.get(tool);
  }

  names(): readonly string[] {
    return [...new Set([...this.#pins.keys(), ...this.#waiting.keys()])];
  }

  /** What an operator may accept: the definition with this digest that waits, or that the config's naming pinned. */
  acceptable(tool: string, digest: string): Definition | undefined {
    const pin = this.#pins.get(tool);
    const unseen = pin?.acceptedBy === CONFIG ? pin.definition : undefined;
    return [this.#waiting.get(tool), unseen].find((one) => one?.digest === digest);
  }

  /** Puts a definition into service, once that is written down. */
  pin(definition: Definition, acceptedBy: string): void {
    const { tool, digest, role } = definition;
    const before = this.#pins.get(tool);
    // Of two that were announced while neither was written down the first stays.
    if (acceptedBy === CONFIG && before?.definition.role === role) return;
    this.#pins.set(tool, { definition, acceptedBy });
    if (this.#waiting.get(tool)?.digest === digest) this.#waiting.delete(tool);
  }

  /** Bounded for each role, so that nobody pushes out what another announced. */
  #wait(definition: Definition): void {
    this.#waiting.delete(definition.tool);
    this.#waiting.set(definition.tool, definition);
    const ofRole = [...this.#waiting.values()].filter((one) => one.role === definition.role);
    const oldest = ofRole[0];
    if (ofRole.length > WAITING_MAX && oldest !== undefined) this.#waiting.delete(oldest.tool);
  }
}

/** No digest is this. */
const UNREADABLE = "unreadable";

async function restoredDefinition(pin: PinRecord, digest: Digest): Promise<Definition> {
  const { tool, role, definition: text } = pin;
  const unreadable = {
    tool,
    role,
    digest: UNREADABLE,
    text: "{}",
    description: undefined,
    schema: undefined,
  };
  if (digest(text) !== pin.digest) return unreadable;
  const parsed = parseJsonObject(text, ARGUMENTS_LIMITS);
  if (!parsed.ok) return unreadable;
  const schema = await readSchema(parsed.value.get("schema"));
  if (typeof schema === "string") return unreadable;
  const described = parsed.value.get("description");
  const description = typeof described === "string" ? described : undefined;
  return { tool, role, digest: pin.digest, text, description, schema };
}

export function pinRecord({ tool, role, digest, text }: Definition, acceptedBy: string): PinRecord {
  return { tool, role, digest, definition: text, acceptedBy };
}

function mayAnnounce(policy: Policy, role: RolePolicy, name: string): boolean {
  if (`${name}.`.startsWith(BUILTIN_PREFIX)) return false;
  const configured = policy.tools.get(name);
  if (configured !== undefined) return configured.role === role.name;
  return role.provides.some((prefix) => name.startsWith(prefix));
}

async function readSchema(schema: Json | undefined): Promise<ArgumentsSchema | undefined | string> {
  if (schema === undefined) return undefined;
  const compiled = await compileArgumentsSchema(schema);
  if (compiled.ok) return compiled.value;
  const first = compiled.fault[0];
  return `\`schema\` is refused at ${first?.pointer || "/"}: ${first?.message ?? "invalid"}`;
}

/** An announced tool that the config does not name has the strictest reading of everything. */
function announcedTool(definition: Definition): ToolPolicy {
  return {
    name: definition.tool,
    role: definition.role,
    description: definition.description,
    effect: "execute",
    floor: { class: "public", untrusted: true },
    timeoutMs: ANNOUNCED_TIMEOUT_MS,
    resultBytesMax: ANNOUNCED_RESULT_BYTES_MAX,
    onOversize: "cut",
    schema: definition.schema,
    destinations: [],
    store: definition.role,
    storeKey: undefined,
    record: "durable",
    auditArguments: [],
  };
}
