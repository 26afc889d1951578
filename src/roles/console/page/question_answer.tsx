// How a question is answered: approve, refuse, approve and remember. Each takes two acts, the second in another
// place than the first. The bar stays at the lower edge, so nothing that arrives moves a button under a finger.
// Invariant: what goes to the broker names the question and the digest that are on the screen.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible } from "../../../base/display.ts";
import { counted, FOLDED, shownJson } from "../../../base/json_text.ts";
import type { WholeQuestion } from "../../../client/answers.ts";
import { failCode } from "./ask.ts";
import { useKeys } from "./keys.ts";
import type { PageProps } from "./page.ts";
import { Button, Countdown, Field } from "./parts.tsx";
import { RememberForm } from "./remember_form.tsx";
import type { ShownQuestion } from "./shown_question.ts";
import type { Wish } from "./wish.ts";

type Mode = "none" | "approve" | "refuse" | "remember";

export interface AnswerProps {
  readonly given: ShownQuestion;
  readonly question: WholeQuestion;
  readonly ask: PageProps["ask"];
  readonly say: PageProps["say"];
  /** Leaves the question. */
  readonly onLeave: () => void;
}

export function AnswerBar({ given, question, ask, say, onLeave }: AnswerProps) {
  const [mode, setMode] = useState<Mode>("none");
  const { busy, problem, approve, refuse } = useAnswers(given, question, ask, say, () => setMode("none"));
  const { isOther } = given.changes;
  useEffect(() => {
    if (isOther) setMode("none"); // what was about to be confirmed is no longer what is there
  }, [isOther]);
  const isStopped = isOther || busy;
  const begin = (next: Mode) => (isStopped ? undefined : setMode(next));
  useKeys({
    a: () => begin("approve"),
    r: () => begin("refuse"),
    ...(question.remember.allowed ? { m: () => begin("remember") } : {}),
    ...(given.changes.sentences.length > 0 ? { l: given.look } : {}),
    Escape: () => (mode === "none" ? onLeave() : setMode("none")),
  });
  const back = () => setMode("none");
  return (
    <section class="answer" aria-label="Answer">
      <ChangedNotice given={given} />
      {mode === "approve" && !isOther ? (
        <ApproveForm question={question} busy={busy} onBack={back} onApprove={() => approve(undefined)} />
      ) : null}
      {mode === "refuse" && !isOther ? <RefuseForm busy={busy} onBack={back} onRefuse={refuse} /> : null}
      {mode === "remember" && !isOther ? (
        <RememberForm remember={question.remember} busy={busy} onBack={back} onApprove={approve} />
      ) : null}
      {problem === undefined ? null : (
        <p class="problem" role="alert">
          {visible(problem)}
        </p>
      )}
      <div class="answer-row">
        <Countdown untilMs={question.expires_at_ms} spoken />
        <div class="buttons">
          <Button hotkey="r" disabled={isStopped || mode === "refuse"} onClick={() => begin("refuse")}>
            Refuse
          </Button>
          {question.remember.allowed ? (
            <Button hotkey="m" disabled={isStopped || mode === "remember"} onClick={() => begin("remember")}>
              Remember…
            </Button>
          ) : null}
          <Button
            kind="primary"
            hotkey="a"
            disabled={isStopped || mode === "approve"}
            onClick={() => begin("approve")}
          >
            Approve
          </Button>
        </div>
      </div>
    </section>
  );
}

interface Answers {
  readonly busy: boolean;
  /** Why the last one did not come about; the question is still open. */
  readonly problem: string | undefined;
  readonly approve: (wish: Wish | undefined) => void;
  readonly refuse: (reason: string) => void;
}

interface Answered {
  readonly remembered?: string | null;
}

function useAnswers(
  given: ShownQuestion,
  { approval, digest, tool, role }: WholeQuestion,
  ask: PageProps["ask"],
  say: PageProps["say"],
  done: () => void,
): Answers {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const send = (verb: "approve" | "refuse", more: object, words: (value: Answered) => string) => {
    setBusy(true);
    void ask<Answered>(`callgate.approvals.${verb}`, { approval, digest, ...more }).then((told) => {
      const isOver = told.ok || failCode(told) === "conflict";
      setBusy(false);
      setProblem(isOver ? undefined : told.why);
      if (isOver) done();
      if (told.ok) say(words(told.value));
      else if (isOver) say(told.why, "bad");
      given.refresh();
    });
  };
  return {
    busy,
    problem,
    approve: (wish) =>
      send("approve", wish === undefined ? {} : { remember: wish }, ({ remembered }) => {
        const kept = typeof remembered === "string" ? ` It is remembered as grant ${remembered}.` : "";
        return `Approved: ${tool} of ${role} is released.${kept}`;
      }),
    refuse: (reason) => send("refuse", reason === "" ? {} : { reason }, () => `Refused: ${tool} of ${role}.`),
  };
}

function ChangedNotice({ given: { changes, look } }: { given: ShownQuestion }) {
  if (changes.sentences.length === 0) return null;
  return (
    <div class="notice notice-warn" role="alert">
      <div>
        <strong>{changes.isOther ? "It has changed: look again." : "Since you opened it:"}</strong>
        <ChangeList sentences={changes.sentences} />
      </div>
      <Button hotkey="l" onClick={look}>
        Look again
      </Button>
    </div>
  );
}

export function ChangeList({ sentences }: { sentences: readonly string[] }) {
  return (
    <ul class="plain-list">
      {sentences.map((sentence) => (
        <li key={sentence}>{visible(sentence)}</li>
      ))}
    </ul>
  );
}

interface ApproveProps {
  readonly question: WholeQuestion;
  readonly busy: boolean;
  readonly onBack: () => void;
  readonly onApprove: () => void;
}

/** The confirming button stands above and at the other side, so that a second click of the same finger hits nothing. */
function ApproveForm({ question, busy, onBack, onApprove }: ApproveProps) {
  const form = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => form.current?.querySelector<HTMLElement>(".button-primary")?.focus(), []);
  const isFolded = shownJson(question.arguments, FOLDED).folded;
  return (
    <div class="answer-form" ref={form}>
      <p>
        Approve this call of <code>{visible(question.tool)}</code>? It runs as stored.
        {isFolded
          ? ` Part of its arguments is folded unless you have opened them (${counted(question.arguments.length, "character")} in all).`
          : ""}
      </p>
      <div class="buttons">
        <Button kind="primary" busy={busy} hotkey="Enter" onClick={onApprove}>
          Yes, approve
        </Button>
        <Button onClick={onBack}>Cancel</Button>
      </div>
    </div>
  );
}

const REASON_CHARS_MAX = 1024;

interface RefuseProps {
  readonly busy: boolean;
  readonly onBack: () => void;
  readonly onRefuse: (reason: string) => void;
}

function RefuseForm({ busy, onBack, onRefuse }: RefuseProps) {
  const [reason, setReason] = useState("");
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), []);
  return (
    <form
      class="answer-form"
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) onRefuse(reason.trim());
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onBack();
      }}
    >
      <Field name="Reason (optional)" hint="For the audit. The caller hears only that a person said no.">
        {(field) => (
          <input
            {...field}
            value={reason}
            maxLength={REASON_CHARS_MAX}
            autoComplete="off"
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="buttons">
        <button type="submit" class="button button-danger" disabled={busy}>
          Refuse it
        </button>
        <Button onClick={onBack}>Cancel</Button>
      </div>
    </form>
  );
}
