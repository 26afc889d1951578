// What keeps a program that a command runs, which is another process of the same user, away from the command itself. It is
// handed in: only program.ts knows the host.

export interface ProcessGuard {
  /** Resolves to whether no other process of this user can read our memory any more. */
  forbidDumps(): Promise<boolean>;
  /** Resolves to whether no child gets a descriptor that we inherited. */
  sealDescriptors(): Promise<boolean>;
}
