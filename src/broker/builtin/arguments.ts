// Reading the arguments of built-in tools: values that the tool's schema has already admitted.

import type { JsonObject } from "../../base/json.ts";

export function text(args: JsonObject, name: string): string | undefined {
  const value = args.get(name);
  return typeof value === "string" ? value : undefined;
}

export function flag(args: JsonObject, name: string): boolean | undefined {
  const value = args.get(name);
  return typeof value === "boolean" ? value : undefined;
}

/** An integer that a double holds exactly. */
export function integer(args: JsonObject, name: string): number | undefined {
  const value = args.get(name);
  return typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : undefined;
}

const DECIMAL = /^(?:0|[1-9][0-9]{0,19})$/;
const U64_MAX = 18_446_744_073_709_551_615n;

/** A call id: a decimal string (exact in every client), or an integer. */
export function callId(args: JsonObject, name: string): bigint | undefined {
  const value = args.get(name);
  const id = typeof value === "string" && DECIMAL.test(value) ? BigInt(value) : value;
  return typeof id === "bigint" && id >= 0n && id <= U64_MAX ? id : undefined;
}

/** JSON Schema of a built-in's arguments, as the compiler wants it. */
export interface MemberSchema {
  readonly type: string | readonly string[];
  readonly description: string;
  readonly enum?: readonly string[];
  readonly items?: object;
  readonly properties?: Readonly<Record<string, MemberSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
}

export function objectSchema(members: Readonly<Record<string, MemberSchema>>, ...required: string[]): object {
  return { type: "object", properties: members, required, additionalProperties: false };
}

export const ROLE: MemberSchema = { type: "string", description: "A role; left out: the caller's own." };
export const SESSION: MemberSchema = { type: "string", description: "A session id." };
export const CALL: MemberSchema = {
  type: ["string", "integer"],
  description: "A call id, as a decimal string or an integer.",
};
