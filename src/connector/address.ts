// How people name a connector: an address of this machine and a port, as in `127.0.0.1:7811` and `[::1]:7811`; either
// may be left out.

import { fault, ok, type Result } from "../base/faults.ts";
import { isLoopbackLiteral } from "./loopback.ts";

/** Of the daemon, the commands and the role, unless they are told another. */
export const CONNECTOR_PORT_DEFAULT = 7811;
export const CONNECTOR_HOST_DEFAULT = "127.0.0.1";

export interface ConnectorAddress {
  readonly host: string;
  readonly port: number;
}

const WORDS = /^(?:\[(?<six>[0-9a-f:]+)\]|(?<four>[0-9.]+))?(?::(?<port>[1-9][0-9]{0,4}))?$/;

/** The fault is a sentence; it quotes nothing. */
export function parseConnectorAddress(text: string): Result<ConnectorAddress> {
  const { six, four, port } = WORDS.exec(text === "::1" ? "[::1]" : text)?.groups ?? {};
  const host = six ?? four ?? (port === undefined ? undefined : CONNECTOR_HOST_DEFAULT);
  const number = port === undefined ? CONNECTOR_PORT_DEFAULT : Number(port);
  if (host !== undefined && isLoopbackLiteral(host) && number <= 65_535) return ok({ host, port: number });
  return fault("an address of this machine with a port is needed, such as 127.0.0.1:7811 or [::1]:7811");
}
