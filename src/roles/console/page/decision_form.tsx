// "What would be decided?": one call that is not made, and how the policy in force comes to its verdict, grant
// by grant. Nothing runs, and nobody is asked.

import { useState } from "preact/hooks";
import { DATA_CLASSES } from "../../../base/labels.ts";
import type { ExplainedGrant, Explanation } from "../../../client/answers.ts";
import { labelsText } from "../../../client/answers.ts";
import { Choice, Text } from "./inputs.tsx";
import type { PageProps, Told } from "./page.ts";
import { Button, Fault, Field, PeerText } from "./parts.tsx";
import { Table } from "./table.tsx";
import { VerdictBadge } from "./verdict_badge.tsx";
import { Words } from "./words.tsx";

interface Wish {
  readonly role: string;
  readonly session: string;
  readonly tool: string;
  readonly args: string;
  readonly class: string;
  readonly trust: string;
}

const BEGUN: Wish = { role: "", session: "", tool: "", args: "{}", class: "", trust: "" };

/** As `callgate.grants.explain` takes it; what is left open is what it is now. */
function argsOf(wish: Wish): Readonly<Record<string, unknown>> {
  return {
    role: wish.role,
    tool: wish.tool.trim(),
    arguments: wish.args.trim() === "" ? "{}" : wish.args,
    session: wish.session.trim() === "" ? undefined : wish.session.trim(),
    taint_class: wish.class === "" ? undefined : wish.class,
    taint_untrusted: wish.trust === "" ? undefined : wish.trust === "untrusted",
  };
}

export function DecisionForm({ live, ask }: PageProps) {
  const [wish, setWish] = useState(BEGUN);
  const [told, setTold] = useState<Told<Explanation>>();
  const [busy, setBusy] = useState(false);
  const change = (changes: Partial<Wish>) => setWish({ ...wish, ...changes });
  const isWhole = wish.role !== "" && wish.tool.trim() !== "";
  const explain = async () => {
    if (!isWhole) return;
    setBusy(true);
    setTold(await ask<Explanation>("callgate.grants.explain", argsOf(wish)));
    setBusy(false);
  };
  return (
    <form
      class="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void explain();
      }}
    >
      <Call wish={wish} change={change} roles={(live.status?.roles ?? []).map(({ role }) => role)} />
      <Field name="Arguments" hint="The text of one JSON object, as the caller would send it.">
        {(given) => (
          <textarea
            {...given}
            class="mono"
            rows={3}
            spellcheck={false}
            value={wish.args}
            onInput={(event) => change({ args: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="buttons">
        <Button kind="primary" disabled={!isWhole} busy={busy} onClick={() => void explain()}>
          What would be decided?
        </Button>
        {isWhole ? null : <span class="hint">Choose a role and name a tool.</span>}
      </div>
      <Fault told={told} />
      {told?.ok ? (
        <Answer explanation={told.value} ofSession={argsOf(wish)["session"] !== undefined} />
      ) : null}
    </form>
  );
}

interface CallProps {
  readonly wish: Wish;
  readonly change: (changes: Partial<Wish>) => void;
  readonly roles: readonly string[];
}

function Call({ wish, change, roles }: CallProps) {
  return (
    <div class="form-row">
      <Choice
        name="Role"
        value={wish.role}
        onChange={(role) => change({ role })}
        none="Choose…"
        options={roles}
      />
      <Text name="Tool" value={wish.tool} onChange={(tool) => change({ tool })} />
      <Text name="Session (optional)" value={wish.session} onChange={(session) => change({ session })} />
      <Choice
        name="Class"
        value={wish.class}
        onChange={(name) => change({ class: name })}
        none="As it is now"
        options={DATA_CLASSES}
      />
      <Choice
        name="Trust"
        value={wish.trust}
        onChange={(trust) => change({ trust })}
        none="As it is now"
        options={["trusted", "untrusted"]}
      />
    </div>
  );
}

function Answer({ explanation, ofSession }: { explanation: Explanation; ofSession: boolean }) {
  const { verdict, reason, grant, row, owner_says: says, role, session, taint, grants } = explanation;
  const by = grant === null ? "no grant fits" : `by grant ${grant}`;
  return (
    <div class="decided" aria-live="polite">
      <p class="verdict">
        <VerdictBadge verdict={verdict} />{" "}
        <Words text={`${reason === null ? "" : `${reason}; `}${by}, row ${row}`} />
      </p>
      {says === null ? null : (
        <p>
          <PeerText text={says} lines />
        </p>
      )}
      <p class="muted">
        <Words
          text={`For role ${role}${ofSession ? `, session ${session}` : ""}, at taint ${labelsText(taint)}.`}
        />
      </p>
      <Table
        caption="How each grant of the role stands to the call, in the order considered"
        columns={[
          { head: "Grant", cell: (step: ExplainedGrant) => <PeerText text={step.grant} chars={80} /> },
          { head: "Effect", cell: ({ effect }) => <VerdictBadge verdict={effect} /> },
          { head: "Standing", cell: (step) => <Words text={standingWords(step)} />, kind: "wide" },
        ]}
        rows={grants}
        idOf={(step) => step.grant}
        rowClass={(step) => (step.failed === null ? "" : "dim")}
      />
    </div>
  );
}

const FAILED: Readonly<Record<string, string>> = {
  tool: "names other tools",
  session: "names other sessions",
  condition: "its condition does not hold",
  equal: "remembers an answer about other arguments",
  remembers: "its question does not arise",
};

/** How one grant stands to the call. */
export function standingWords(step: ExplainedGrant): string {
  const { failed, condition_error: error } = step;
  if (failed === "condition" && error !== null) return `its condition errors, so it does not allow: ${error}`;
  if (failed !== null) return FAILED[failed] ?? failed;
  const notes = [
    error === null ? undefined : `(its condition errors: ${error})`,
    step.expired ? "but has expired" : undefined,
    step.spent === true ? "but is used up" : undefined,
    step.within_taint === false ? "but not at this taint" : undefined,
    (step.satisfied_by ?? null) === null ? undefined : `but was answered before: ${step.satisfied_by}`,
  ].filter((note) => note !== undefined);
  return ["matches", ...notes].join(" ");
}
