// Of a config, what an installer has to know: the host reads it, the commands write units of it.

export interface InstalledRole {
  readonly name: string;
  /** Names of users and groups that may connect, as far as the config has names; a number is left out. */
  readonly users: readonly string[];
  readonly groups: readonly string[];
  /** Of its socket: a name or a number; undefined: the daemon's own group. */
  readonly group: string | undefined;
  readonly mode: number;
  readonly provides: readonly string[];
}

export interface InstalledConfig {
  /** Absolute, as are the others. */
  readonly path: string;
  readonly socketsDir: string;
  readonly stateDir: string;
  readonly drainTimeoutMs: number;
  readonly schemaDirs: readonly string[];
  readonly roles: readonly InstalledRole[];
}
