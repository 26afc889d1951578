// Adding a grant: a form that says in a sentence, while it is filled in, what the grant will let through. What
// may be given is the broker's to say; its refusal is shown at the field that it is about.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { DATA_CLASSES } from "../../../base/labels.ts";
import { secondsOf } from "../../../base/time_text.ts";
import { fieldOf, type GrantTerms, grantSentence } from "./grant_words.ts";
import { OpenedHead } from "./opened_head.tsx";
import type { PageProps } from "./page.ts";
import { Button, Field, type FieldGiven } from "./parts.tsx";
import { Words } from "./words.tsx";

/** As typed. */
interface Draft {
  readonly role: string;
  readonly effect: string;
  readonly tools: string;
  readonly sessions: string;
  readonly when: string;
  readonly taintMax: string;
  readonly untrusted: boolean;
  readonly aboveTaint: boolean;
  readonly expires: string;
  readonly maxCalls: string;
  readonly per: string;
  readonly id: string;
  readonly reason: string;
}

const BEGUN: Draft = {
  role: "",
  effect: "allow",
  tools: "",
  sessions: "",
  when: "",
  taintMax: "internal",
  untrusted: false,
  aboveTaint: false,
  expires: "1h",
  maxCalls: "",
  per: "",
  id: "",
  reason: "",
};

type Problems = Readonly<Record<string, string | undefined>>;

const LENGTH_HINT = "90s, 15m, 1h or 7d.";

/** What can't even be sent, by the broker's names of the fields. */
function problemsOf(draft: Draft): Problems {
  const bounded = draft.effect !== "deny";
  const length = (text: string) => text !== "" && secondsOf(text) === undefined;
  return {
    role: draft.role === "" ? "Choose whom it serves." : undefined,
    tools: listOf(draft.tools).length === 0 ? "Name at least one tool." : undefined,
    expires_in_seconds:
      bounded && secondsOf(draft.expires) === undefined ? `Say how long it holds: ${LENGTH_HINT}` : undefined,
    max_calls:
      bounded && draft.maxCalls !== "" && !/^[1-9][0-9]{0,9}$/.test(draft.maxCalls)
        ? "It must be a whole number from 1."
        : undefined,
    max_calls_per_seconds:
      bounded && length(draft.per) ? `It must be a length of time: ${LENGTH_HINT}` : undefined,
    reason: draft.reason.trim() === "" ? "Say why; whoever is shown the grant reads it." : undefined,
  };
}

function listOf(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((one) => one !== "");
}

function filled(text: string): string | undefined {
  return text.trim() === "" ? undefined : text.trim();
}

function termsOf(draft: Draft): GrantTerms {
  const bounded = draft.effect !== "deny";
  const seconds = secondsOf(draft.expires);
  const per = secondsOf(draft.per);
  return {
    role: draft.role,
    effect: draft.effect,
    tools: listOf(draft.tools),
    sessions: listOf(draft.sessions),
    when: filled(draft.when),
    taintMax: bounded ? draft.taintMax : undefined,
    taintUntrusted: draft.untrusted,
    aboveTaint: draft.aboveTaint ? "ask" : "deny",
    lastsMs: bounded && seconds !== undefined ? seconds * 1000 : undefined,
    maxCalls: bounded && draft.maxCalls !== "" ? Number(draft.maxCalls) : undefined,
    perMs: per === undefined ? undefined : per * 1000,
  };
}

/** As `callgate.grants.add` takes it. */
function argsOf(draft: Draft): Readonly<Record<string, unknown>> {
  const { role, effect } = draft;
  const sessions = listOf(draft.sessions);
  const common = {
    role,
    effect,
    tools: listOf(draft.tools),
    sessions: sessions.length === 0 ? undefined : sessions,
    when: filled(draft.when),
    id: filled(draft.id),
    reason: draft.reason.trim(),
  };
  if (effect === "deny") return common;
  return {
    ...common,
    taint_max: draft.taintMax,
    taint_untrusted: draft.untrusted,
    above_taint: draft.aboveTaint ? "ask" : undefined,
    expires_in_seconds: secondsOf(draft.expires),
    max_calls: draft.maxCalls === "" ? undefined : Number(draft.maxCalls),
    max_calls_per_seconds: secondsOf(draft.per),
  };
}

export function GrantForm({ live, ask, say, go }: PageProps) {
  const [draft, setDraft] = useState(BEGUN);
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState<string>();
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const own = problemsOf(draft);
  const isWrong = Object.values(own).some((problem) => problem !== undefined);
  const at = refused === undefined ? undefined : fieldOf(refused);
  const problem = (name: string) => (name === at ? refused : tried ? own[name] : undefined);
  const change = (changes: Partial<Draft>) => {
    setDraft({ ...draft, ...changes });
    setRefused(undefined);
  };
  // To where something is to be mended: a screen reader says what with it.
  useEffect(() => {
    if (refused !== undefined) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [refused]);
  const add = async () => {
    setTried(true);
    if (isWrong) return;
    setBusy(true);
    const told = await ask<{ readonly grant: string }>("callgate.grants.add", argsOf(draft));
    setBusy(false);
    if (!told.ok) return setRefused(told.why);
    say(`Grant ${told.value.grant} is in force.`, "good");
    go("grants", told.value.grant);
  };
  const given = { draft, change, problem };
  return (
    <>
      <OpenedHead page="grants" back="All grants" title="Add a grant" />
      <form
        class="form panel"
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <Who {...given} roles={(live.status?.roles ?? []).map(({ role }) => role)} />
        <Which {...given} />
        {draft.effect === "deny" ? null : <Bounds {...given} />}
        <Why {...given} />
        <p class="sentence" aria-live="polite">
          <strong>What it does.</strong> <Words text={grantSentence(termsOf(draft))} chars={3000} />
        </p>
        {refused !== undefined && at === undefined ? (
          <div class="fault" role="alert">
            <p>
              <Words text={refused} />
            </p>
          </div>
        ) : null}
        <div class="buttons">
          <Button kind="primary" busy={busy} onClick={() => void add()}>
            Add this grant
          </Button>
          <Button onClick={() => go("grants")}>Cancel</Button>
          {tried && isWrong ? (
            <span class="problem" role="alert">
              Something is missing above.
            </span>
          ) : null}
        </div>
      </form>
    </>
  );
}

interface PartProps {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly problem: (name: string) => string | undefined;
}

const EFFECTS = [
  ["allow", "Allow: calls go through"],
  ["ask", "Ask: a person decides each time"],
  ["deny", "Deny: nothing goes through, whatever others allow"],
] as const;

function Who({ draft, change, problem, roles }: PartProps & { roles: readonly string[] }) {
  return (
    <div class="form-row">
      <Field name="Role" problem={problem("role")} hint="Never your own: nobody gives to themselves.">
        {(given) => (
          <select
            {...given}
            value={draft.role}
            onChange={(event) => change({ role: event.currentTarget.value })}
          >
            <option value="">Choose…</option>
            {roles.map((role) => (
              <option key={role} value={role}>
                {role}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field name="Effect" problem={problem("effect")}>
        {(given) => (
          <select
            {...given}
            value={draft.effect}
            onChange={(event) => change({ effect: event.currentTarget.value })}
          >
            {EFFECTS.map(([effect, words]) => (
              <option key={effect} value={effect}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}

function Which({ draft, change, problem }: PartProps) {
  return (
    <>
      <div class="form-row">
        <Field name="Tools" problem={problem("tools")} hint="Names, or beginnings with a star: files.*">
          {input(draft.tools, (tools) => change({ tools }), "read_file, mail.*")}
        </Field>
        <Field
          name="Sessions (optional)"
          problem={problem("sessions")}
          hint="Empty: all. Only for roles whose sessions others open."
        >
          {input(draft.sessions, (sessions) => change({ sessions }), "letter-*")}
        </Field>
      </div>
      <Field
        name="Condition (optional)"
        problem={problem("when")}
        hint="CEL over args, session, role, tool. Calls for which it errors are not let through."
      >
        {input(draft.when, (when) => change({ when }), 'under(args.path, "/srv/notes")', "mono")}
      </Field>
    </>
  );
}

function Bounds({ draft, change, problem }: PartProps) {
  return (
    <>
      <div class="form-row">
        <Field name="Holds up to class" problem={problem("taint_max")}>
          {(given) => (
            <select
              {...given}
              value={draft.taintMax}
              onChange={(event) => change({ taintMax: event.currentTarget.value })}
            >
              {DATA_CLASSES.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field name="Ends after" problem={problem("expires_in_seconds")} hint={LENGTH_HINT}>
          {input(draft.expires, (expires) => change({ expires }), "1h")}
        </Field>
        <Field name="Calls at most (optional)" problem={problem("max_calls")} hint="Empty: as many as come.">
          {input(draft.maxCalls, (maxCalls) => change({ maxCalls }), "20")}
        </Field>
        <Field name="in every (optional)" problem={problem("max_calls_per_seconds")} hint="Empty: in all.">
          {input(draft.per, (per) => change({ per }), "1h")}
        </Field>
      </div>
      <div class="checks">
        <Check
          checked={draft.untrusted}
          onChange={(untrusted) => change({ untrusted })}
          problem={problem("taint_untrusted")}
        >
          Also after the session has read something untrusted
        </Check>
        <Check
          checked={draft.aboveTaint}
          onChange={(aboveTaint) => change({ aboveTaint })}
          problem={problem("above_taint")}
        >
          Above that taint a person is asked (otherwise it is denied)
        </Check>
      </div>
    </>
  );
}

function Why({ draft, change, problem }: PartProps) {
  return (
    <div class="form-row">
      <Field
        name="Reason"
        problem={problem("reason")}
        hint="For everybody who is shown the grant, and the audit."
      >
        {input(draft.reason, (reason) => change({ reason }), "")}
      </Field>
      <Field
        name="Id (optional)"
        problem={problem("id")}
        hint="Put after runtime. Empty: the broker makes one."
      >
        {input(draft.id, (id) => change({ id }), "")}
      </Field>
    </div>
  );
}

function input(value: string, onChange: (value: string) => void, example: string, kind?: string) {
  return (given: FieldGiven): JSX.Element => (
    <input
      {...given}
      class={kind}
      value={value}
      placeholder={example}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

interface CheckProps {
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly problem: string | undefined;
  readonly children: string;
}

function Check({ checked, onChange, problem, children }: CheckProps) {
  return (
    <div>
      <label class="check">
        <input
          type="checkbox"
          checked={checked}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        {children}
      </label>
      {problem === undefined ? null : <p class="problem">{problem}</p>}
    </div>
  );
}
