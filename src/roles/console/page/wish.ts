// What a person writes of how an approval is to be remembered, read as the broker takes it, or what is wrong with
// each part of it.

import { secondsOf } from "../../../base/time_text.ts";
import type { Remembering } from "../../../client/answers.ts";

/** As `callgate.approvals.approve` takes it. */
export interface Wish {
  readonly what: "arguments" | "tool";
  readonly seconds: number;
  readonly calls?: number;
}

export interface Written {
  readonly what: Wish["what"] | undefined;
  readonly length: string;
  readonly calls: string;
}

export type Problems = { readonly [K in keyof Written]?: string };

/** 30 days: the broker's own bound. */
const SECONDS_MAX = 2_592_000;

const COUNT = /^[1-9][0-9]{0,8}$/;

/** What is written as a wish, or what is wrong with each part of it. */
export function wishOf(
  { what, length, calls }: Written,
  { number_needed: isNumberNeeded }: Pick<Remembering, "number_needed">,
): { readonly wish: Wish } | { readonly problems: Problems } {
  const seconds = secondsOf(length.trim());
  const count = calls.trim();
  const problems: Problems = {
    ...(what === undefined ? { what: "Choose what it is to cover." } : {}),
    ...(seconds === undefined ? { length: "A length of time: 15m, 1h, 7d." } : {}),
    ...(seconds !== undefined && seconds > SECONDS_MAX ? { length: "30 days at most." } : {}),
    ...(count === "" && isNumberNeeded ? { calls: "Say for how many calls." } : {}),
    ...(count === "" || COUNT.test(count) ? {} : { calls: "A whole number from 1." }),
  };
  if (what === undefined || seconds === undefined || Object.keys(problems).length > 0) return { problems };
  return { wish: { what, seconds, ...(count === "" ? {} : { calls: Number(count) }) } };
}
