// How commands come to a connector: its address, the caller that they are there, and that caller's secret, which is read
// from a file and is never an argument, since everybody can read those.

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { visibleLine } from "../base/display.ts";
import {
  CONNECTOR_PORT_DEFAULT,
  type ConnectorAddress,
  parseConnectorAddress,
} from "../connector/address.ts";
import { frameBytesForPayload } from "../connector/frame_arithmetic.ts";
import { PAYLOAD_BYTES_MIN } from "../connector/limits.ts";
import { connectionKey, secretFromFileBytes } from "../connector/secret.ts";
import { isId } from "../connector/text_rules.ts";
import { UsageFault } from "./call.ts";
import { type Flags, textOf } from "./command_row.ts";
import { lengthOf } from "./connector_options.ts";
import { codeOf } from "./replace_file.ts";

export interface ConnectorReach extends ConnectorAddress {
  readonly caller: string;
  readonly secret: string;
  readonly maxFrameBytes: number;
  readonly horizonMs: number;
}

/** @throws UsageFault */
export function connectorReach(flags: Flags): ConnectorReach {
  const given = textOf(flags, "connect") ?? process.env["CALLGATE_CONNECTOR"] ?? "";
  const address = parseConnectorAddress(given === "" ? `:${CONNECTOR_PORT_DEFAULT}` : given);
  if (!address.ok) throw new UsageFault(`--connect: ${address.fault}`);
  const caller = textOf(flags, "caller") ?? "";
  if (!isId(caller))
    throw new UsageFault("--caller must be 1 to 256 bytes without control characters and edge spaces");
  const payloadBytes = Number(flags["maxPayloadBytes"]);
  if (payloadBytes < PAYLOAD_BYTES_MIN)
    throw new UsageFault(`--max-payload-bytes must be at least ${PAYLOAD_BYTES_MIN}`);
  return {
    ...address.value,
    caller,
    secret: secretIn(textOf(flags, "secretFile") ?? ""),
    maxFrameBytes: frameBytesForPayload(payloadBytes),
    horizonMs: lengthOf(flags, "expiryHorizon"),
  };
}

/** A longer file is no secret. */
const SECRET_FILE_BYTES_MAX = 4096;
const OTHERS = 0o007;

/** @throws UsageFault, which names the file and nothing in it */
function secretIn(path: string): string {
  const refuse = (why: string): never => {
    throw new UsageFault(`--secret-file: ${visibleLine(JSON.stringify(path), 300)} ${why}`);
  };
  const bytes = readSecretBytes(path, refuse);
  const secret = secretFromFileBytes(bytes);
  if (!secret.ok) return refuse("is not UTF-8 text");
  const key = connectionKey(secret.value);
  return key.ok ? secret.value : refuse(`holds no connection secret: ${key.fault}`);
}

function readSecretBytes(path: string, refuse: (why: string) => never): Buffer {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = fstatSync(fd);
    if (!stats.isFile()) return refuse("is no regular file");
    if ((stats.mode & OTHERS) !== 0) return refuse("is open to every user: chmod o= it");
    const buffer = Buffer.alloc(SECRET_FILE_BYTES_MAX + 1);
    const length = readSync(fd, buffer, 0, buffer.length, 0);
    return length > SECRET_FILE_BYTES_MAX ? refuse("is too long for a secret") : buffer.subarray(0, length);
  } catch (error) {
    if (error instanceof UsageFault) throw error;
    return refuse(`can't be read (${codeOf(error)})`);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
