// What an operator does to a session from the page: stop it, let it go on, lower its taint. Each says first
// what will come of it, and an endorsement names the version that was on the screen when it was begun.

import { useId, useState } from "preact/hooks";
import { counted } from "../../../base/json_text.ts";
import { covers, DATA_CLASSES, type Labels as LabelSet } from "../../../base/labels.ts";
import { labelsText, type Tainted, type WholeSession } from "../../../client/answers.ts";
import type { PolicyReach } from "../../../client/load_answers.ts";
import { useAsked } from "./asked.ts";
import type { PageProps } from "./page.ts";
import { Button, Confirm, Dialog, Fault, Field, Labels, Loading } from "./parts.tsx";
import { type Changed, changedBetween } from "./reach.ts";
import { asLabels } from "./timeline.ts";
import { VerdictBadge } from "./verdict_badge.tsx";
import { Words } from "./words.tsx";

export interface FreezeProps extends Pick<PageProps, "ask" | "say"> {
  readonly role: string;
  /** undefined: the whole role. */
  readonly session: string | undefined;
  readonly frozen: boolean;
  readonly onDone: () => void;
}

export function Freeze({ ask, say, role, session, frozen, onDone }: FreezeProps) {
  const [busy, setBusy] = useState(false);
  const whose = session === undefined ? `role ${role}` : `session ${session} of role ${role}`;
  const freeze = async () => {
    setBusy(true);
    const told = await ask<Frozen>("callgate.freeze", { role, session, frozen: !frozen });
    setBusy(false);
    if (told.ok) say(frozen ? `The ${whose} goes on.` : frozenWords(whose, told.value), "good");
    else say(told.why, "bad");
    onDone();
  };
  const what = session === undefined ? "role" : "session";
  return (
    <Confirm
      label={frozen ? `Let this ${what} go on` : `Freeze this ${what}`}
      question={<Words text={frozen ? thawQuestion(whose) : freezeQuestion(whose, session === undefined)} />}
      verb={frozen ? "Let it go on" : "Freeze"}
      kind={frozen ? "primary" : "danger"}
      busy={busy}
      onConfirm={() => void freeze()}
    />
  );
}

interface Frozen {
  readonly stopped: { readonly calls: number; readonly connections: number };
}

function frozenWords(whose: string, { stopped }: Frozen): string {
  return `The ${whose} is frozen. ${counted(stopped.calls, "call")} of it ended with that.`;
}

function freezeQuestion(whose: string, isRole: boolean): string {
  const connections = isRole ? " and its connections are closed" : "";
  return `Everything that runs or waits in ${whose} ends at once${connections}, and no new call is taken until somebody lets it go on. What a provider has already done is not undone.`;
}

function thawQuestion(whose: string): string {
  return `Calls of ${whose} are taken again. Its taint is what it was.`;
}

export interface EndorseProps extends Pick<PageProps, "ask" | "say"> {
  readonly session: WholeSession;
  readonly onDone: () => void;
}

/** What is endorsed: the session's own taint, or the role's, below which no session is. */
interface Target {
  readonly seen: Tainted;
  /** As the broker takes it. */
  readonly args: { readonly role: string; readonly session?: string };
  readonly whose: string;
}

function targetOf(session: WholeSession): Target {
  const { role, session: id, role_taint: ofRole } = session;
  const now = asLabels(session.taint);
  const floor = asLabels(ofRole?.taint);
  // What the role has is in every session: as long as that is all there is, it is what can be lowered.
  const isRoles = floor !== undefined && now !== undefined && covers(floor, now);
  if (session.taint_scope === "session" && !isRoles)
    return { seen: session, args: { role, session: id }, whose: `session ${id} of role ${role}` };
  return { seen: ofRole ?? session, args: { role }, whose: `role ${role}, in all of its sessions` };
}

export function Endorse(props: EndorseProps) {
  const [target, setTarget] = useState<Target>();
  const { taint } = props.session;
  const isClean = taint.class === "public" && !taint.untrusted;
  if (isClean) return null;
  return (
    <>
      <Button onClick={() => setTarget(targetOf(props.session))}>Lower the taint…</Button>
      {target === undefined ? null : (
        <Dialog title="Lower a taint" onClose={() => setTarget(undefined)}>
          <EndorseForm {...props} target={target} onClose={() => setTarget(undefined)} />
        </Dialog>
      )}
    </>
  );
}

interface FormProps extends EndorseProps {
  readonly target: Target;
  readonly onClose: () => void;
}

function EndorseForm({ ask, say, target, onDone, onClose }: FormProps) {
  const seen = asLabels(target.seen.taint) ?? { class: "restricted", untrusted: true };
  const [to, setTo] = useState<LabelSet>({ ...seen, untrusted: false });
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const wrong = whyNot(seen, to, reason);
  const endorse = async () => {
    setBusy(true);
    const args = { ...target.args, version: target.seen.version, ...to, reason };
    const told = await ask("callgate.sessions.endorse", args);
    setBusy(false);
    if (!told.ok) return setProblem(told.why);
    say(`The taint of ${target.whose} is now ${labelsText(to)}.`, "good");
    onDone();
    onClose();
  };
  return (
    <div class="form">
      <p>
        <Words text={`This is about ${target.whose}. It was seen as`} /> <Labels labels={target.seen.taint} />{" "}
        <span class="muted">
          (version {String(target.seen.version)}); if it rises meanwhile, nothing is lowered.
        </span>
      </p>
      <LabelFields seen={seen} to={to} onChange={setTo} />
      <Field name="Reason" hint="Why it may be lowered. It is kept in the audit for good.">
        {(given) => (
          <textarea
            {...given}
            rows={2}
            maxLength={1024}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
      <Consequences ask={ask} role={target.args.role} from={seen} to={to} />
      {problem === undefined ? null : (
        <div class="fault" role="alert">
          <p>
            <Words text={problem} />
          </p>
        </div>
      )}
      <div class="buttons">
        <Button kind="danger" busy={busy} disabled={wrong !== undefined} onClick={() => void endorse()}>
          Endorse: it counts as {labelsText(to)}
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
      {wrong === undefined ? null : <p class="hint">{wrong}</p>}
    </div>
  );
}

function whyNot(seen: LabelSet, to: LabelSet, reason: string): string | undefined {
  if (!covers(seen, to)) return "An endorsement only lowers: choose nothing above what it is now.";
  if (covers(to, seen)) return "Choose labels below what it is now.";
  return reason.trim() === "" ? "Say why." : undefined;
}

interface LabelFieldsProps {
  readonly seen: LabelSet;
  readonly to: LabelSet;
  readonly onChange: (to: LabelSet) => void;
}

function LabelFields({ seen, to, onChange }: LabelFieldsProps) {
  const name = useId();
  const classes = DATA_CLASSES.slice(0, DATA_CLASSES.indexOf(seen.class) + 1);
  const trusts = seen.untrusted ? [false, true] : [false];
  return (
    <div class="form-row">
      <fieldset class="radios">
        <legend>From now on its class is</legend>
        {classes.map((one) => (
          <label key={one}>
            <input
              type="radio"
              name={`${name}-class`}
              checked={to.class === one}
              onChange={() => onChange({ ...to, class: one })}
            />
            {one}
          </label>
        ))}
      </fieldset>
      <fieldset class="radios">
        <legend>and what it has read is</legend>
        {trusts.map((one) => (
          <label key={String(one)}>
            <input
              type="radio"
              name={`${name}-trust`}
              checked={to.untrusted === one}
              onChange={() => onChange({ ...to, untrusted: one })}
            />
            {one ? "untrusted" : "trusted"}
          </label>
        ))}
      </fieldset>
    </div>
  );
}

interface ConsequencesProps extends Pick<PageProps, "ask"> {
  readonly role: string;
  readonly from: LabelSet;
  readonly to: LabelSet;
}

/** Tools named before it is said how many more there are. */
const CHANGES_SHOWN = 8;

/** What the role may do afterwards that it may not do now. */
function Consequences({ ask, role, from, to }: ConsequencesProps) {
  const { told, loading } = useAsked<PolicyReach>(ask, "callgate.grants.explain", { role });
  if (told === undefined) return loading ? <Loading what="what this would change" /> : null;
  if (!told.ok) return <Fault told={told} />;
  const tools = told.value.roles.find((one) => one.role === role)?.tools ?? [];
  const changed = changedBetween(tools, from, to);
  return (
    <section class="consequences" aria-live="polite">
      <h3>What comes of it</h3>
      <p>
        Whatever was read before counts as {labelsText(to)}: the broker no longer holds a call back because of
        it. {changed.length === 0 ? "No tool is decided otherwise than now." : "These are decided otherwise:"}
      </p>
      <ul>
        {changed.slice(0, CHANGES_SHOWN).map((one) => (
          <ChangeLine key={one.tool} {...one} />
        ))}
      </ul>
      {changed.length > CHANGES_SHOWN ? <p>and {changed.length - CHANGES_SHOWN} more.</p> : null}
    </section>
  );
}

function ChangeLine({ tool, from, to }: Changed) {
  return (
    <li>
      <code>
        <Words text={tool} chars={120} />
      </code>{" "}
      <VerdictBadge verdict={from} /> <span aria-hidden="true">→</span> <span class="unseen">becomes</span>{" "}
      <VerdictBadge verdict={to} />
    </li>
  );
}
