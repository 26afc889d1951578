// The adversary of escape.test.ts, as a process of its own: makes one name lead, in turn, to a
// directory and to a link that leads outside, as often as it is told to, as fast as it can.
// Arguments: how often, the name, where the link leads.

import { renameSync, symlinkSync, unlinkSync } from "node:fs";

const [times, name, outside] = process.argv.slice(2);
const parked = `${name}.parked`;
for (let done = 0; done < Number(times); done += 1) {
  renameSync(name, parked);
  symlinkSync(outside, name);
  unlinkSync(name);
  renameSync(parked, name);
}
