// Closings of questions that could not be written: until they are, a restart would find a question open that
// nobody here has. They are written again until that holds; meanwhile nothing here can answer them.

import type { Change } from "../store/records.ts";
import type { Core } from "./core.ts";

const AGAIN_MS = 5000;

/** Sees to it that what is owed gets written. Called after anything was added to it. */
export function payLater(core: Core): void {
  if (core.approvals.paying) return;
  core.approvals.paying = true;
  core.clock.after(AGAIN_MS, () => pay(core));
}

function pay(core: Core): void {
  const records = core.approvals.takeOwed();
  const changes = records.map((approval): Change => ({ kind: "approval", approval }));
  const done = (written: boolean) => {
    core.approvals.paying = false;
    if (written) return;
    for (const record of records) core.approvals.owe(record);
    payLater(core);
  };
  try {
    core.store.commit(changes, (fault) => done(fault === undefined));
  } catch {
    done(false);
  }
}
