// How commands come to a connector: its address, the caller that they are there, and that caller's secret, which is read
// from a file and is never an argument, since everybody can read those.

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
import { readSecretFile, refuseSecretFile } from "./secret_file.ts";

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

/** @throws UsageFault, which names the file and nothing in it */
function secretIn(path: string): string {
  const secret = secretFromFileBytes(readSecretFile("--secret-file", path, SECRET_FILE_BYTES_MAX));
  if (!secret.ok) return refuseSecretFile("--secret-file", path, "is not UTF-8 text");
  const key = connectionKey(secret.value);
  if (key.ok) return secret.value;
  return refuseSecretFile("--secret-file", path, `holds no connection secret: ${key.fault}`);
}
