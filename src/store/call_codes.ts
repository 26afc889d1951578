// Numbers that stand for a call's status, its code and its labels in records of bytes.
// Invariant: never renumbered, since a store on disk has them; every name has one.

import type { FailCode } from "../base/faults.ts";
import { DATA_CLASSES, type DataClass, type Labels } from "../base/labels.ts";
import type { CallStatus } from "./records.ts";

const STATUS: Readonly<Record<CallStatus, number>> = { result: 1, failed: 2, denied: 3 };
const CODE: Readonly<Record<FailCode, number>> = {
  bad_arguments: 1,
  capacity: 2,
  no_provider: 3,
  provider_lost: 4,
  timeout: 5,
  too_large: 6,
  conflict: 7,
  cancelled: 8,
  outcome_unknown: 9,
  unavailable: 10,
  provider: 11,
};
const CLASS: Readonly<Record<DataClass, number>> = { public: 0, internal: 1, confidential: 2, restricted: 3 };
const CLASS_BITS = 3;
const UNTRUSTED = 0x40;

const STATUSES = inverse(STATUS);
const CODES = inverse(CODE);

function inverse<K extends string>(table: Readonly<Record<K, number>>): ReadonlyMap<number, K> {
  return new Map(Object.entries<number>(table).map(([name, value]) => [value, name as K]));
}

/** Four bits; 0: none. */
export function statusNumber(status: CallStatus | undefined): number {
  return status === undefined ? 0 : STATUS[status];
}

export function statusOf(number: number): CallStatus | undefined {
  return STATUSES.get(number);
}

/** Eight bits; 0: none. */
export function codeNumber(code: FailCode | undefined): number {
  return code === undefined ? 0 : CODE[code];
}

export function codeOf(number: number): FailCode | undefined {
  return CODES.get(number);
}

/** Bits 0, 1 and 6 of a byte. */
export function labelBits(labels: Labels): number {
  return (labels.untrusted ? UNTRUSTED : 0) | CLASS[labels.class];
}

export function labelsOf(bits: number): Labels {
  return {
    class: DATA_CLASSES[bits & CLASS_BITS] ?? "restricted",
    untrusted: (bits & UNTRUSTED) !== 0,
  };
}
