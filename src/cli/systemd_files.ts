// The files of `systemd/`, for who packages callgate: the units as they are for the usual places. Each is written by
// the code that `callgate install` runs, so there are no two of them (test/systemd/write_units.ts rewrites the directory).

import { OWN_DIRECTORIES, OWN_USERS } from "./systemd_identity.ts";
import { USUAL_PROGRAM } from "./systemd_sandbox.ts";
import {
  CONFIG_DIRECTORY,
  connectorUnit,
  consoleTemplate,
  consoleUserUnit,
  daemonUnit,
  filesTemplate,
  mcpTemplate,
  modelTemplate,
  type Places,
  programTemplate,
  SOCKETS_DIRECTORY,
  STATE_DIRECTORY,
  socketTemplate,
} from "./systemd_units.ts";

/** Longer than the usual drain_timeout of 10 s, with what comes after. */
const STOP_SECONDS = 60;

export const USUAL_PLACES: Places = {
  program: USUAL_PROGRAM,
  config: `${CONFIG_DIRECTORY}/callgate.toml`,
  sockets: SOCKETS_DIRECTORY,
  state: STATE_DIRECTORY,
  schemas: [],
  stopSeconds: STOP_SECONDS,
};

/** Of the system's own manager, by their names: the daemon, the sockets and a template for each kind of program. */
export function systemUnits(places: Places): ReadonlyMap<string, string> {
  const { program } = places;
  return new Map([
    ["callgate.service", daemonUnit(places)],
    ["callgate-role@.socket", socketTemplate(places)],
    ...roleUnits(places),
    ["callgate-connector.service", connectorUnit(program)],
    ["callgate-console@.service", consoleTemplate(places)],
  ]);
}

function roleUnits(places: Places): readonly (readonly [string, string])[] {
  return [
    ["callgate-files@.service", filesTemplate(places)],
    ["callgate-mcp@.service", mcpTemplate(places)],
    ["callgate-model@.service", modelTemplate(places)],
    ["callgate-program@.service", programTemplate(places)],
  ];
}

/** Every file of `systemd/`, by its path in there. */
export function packagedFiles(): ReadonlyMap<string, string> {
  return new Map([
    ...systemUnits(USUAL_PLACES),
    ["user/callgate-console.service", consoleUserUnit(USUAL_PLACES)],
    ["sysusers.d/callgate.conf", OWN_USERS],
    ["tmpfiles.d/callgate.conf", OWN_DIRECTORIES],
  ]);
}
