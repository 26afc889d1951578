// Labels of what people wrote into grants: reason, condition and id. Those of the config are the owner's;
// of those made at run time they are what their writer had been given then, whichever tool shows them.

import { CLEAN, join, type Labels } from "../../base/labels.ts";
import type { Core } from "../core.ts";

const TOP: Labels = { class: "restricted", untrusted: true };
/** Ids of grants that somebody added begin so, also where they are gone by now. */
const ADDED_PREFIX = "runtime.";

/** Of the words of all grants with these ids. */
export function grantWordsLabels(core: Core, ids: Iterable<string>): Labels {
  let labels = CLEAN;
  for (const id of ids) labels = join(labels, ofGrant(core, id));
  return labels;
}

function ofGrant(core: Core, id: string): Labels {
  const held = core.grants.find(id);
  if (held !== undefined) return held.origin.labels;
  return id.startsWith(ADDED_PREFIX) ? TOP : CLEAN;
}

/** For words in the audit, which does not say what their writer had been given. Which session of the writer's role it was is not kept: where they are told apart, it may have been any. */
export function writerLabels(core: Core, writer: string): Labels {
  const role = core.runtime.policy.roles.get(writer);
  return role?.taintScope === "role" ? core.sessions.roleTaint(writer) : TOP;
}
