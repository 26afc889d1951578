// Approving a question and its like from now on: what it covers, for how long, how often. What each choice
// covers is the broker's own text, shown before anything is chosen; nothing is chosen beforehand.

import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible } from "../../../base/display.ts";
import { span } from "../../../base/time_text.ts";
import type { Remembering } from "../../../client/answers.ts";
import { Button, Field } from "./parts.tsx";
import { type Problems, type Wish, type Written, wishOf } from "./wish.ts";

export interface RememberProps {
  readonly remember: Remembering;
  readonly busy: boolean;
  readonly onBack: () => void;
  readonly onApprove: (wish: Wish) => void;
}

const NONE: Problems = {};
const LENGTHS = ["15m", "1h", "8h", "1d", "7d", "30d"] as const;

export function RememberForm({ remember, busy, onBack, onApprove }: RememberProps) {
  const [written, setWritten] = useState<Written>({ what: undefined, length: "1h", calls: "" });
  const [problems, setProblems] = useState(NONE);
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => form.current?.querySelector("input")?.focus(), []);
  const submit = () => {
    const read = wishOf(written, remember);
    if ("problems" in read) return setProblems(read.problems);
    setProblems(NONE);
    if (!busy) onApprove(read.wish);
  };
  const lengths = useId();
  return (
    <form
      class="answer-form"
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onBack();
      }}
    >
      <What written={written} remember={remember} problem={problems.what} onWrite={setWritten} />
      <div class="filters">
        <Field name="For how long" hint={untilHint(remember)} problem={problems.length}>
          {(field) => (
            <>
              <input
                {...field}
                list={lengths}
                value={written.length}
                autoComplete="off"
                onInput={(event) => setWritten({ ...written, length: event.currentTarget.value })}
              />
              <datalist id={lengths}>
                {LENGTHS.map((length) => (
                  <option key={length} value={length} />
                ))}
              </datalist>
            </>
          )}
        </Field>
        <Field
          name={remember.number_needed ? "For how many calls" : "For how many calls (optional)"}
          hint={
            remember.number_needed ? "What spends or executes needs a number." : "Empty: as many as come."
          }
          problem={problems.calls}
        >
          {(field) => (
            <input
              {...field}
              inputMode="numeric"
              value={written.calls}
              autoComplete="off"
              onInput={(event) => setWritten({ ...written, calls: event.currentTarget.value })}
            />
          )}
        </Field>
      </div>
      <div class="buttons">
        <button type="submit" class="button button-primary" disabled={busy}>
          Approve and remember
        </button>
        <Button onClick={onBack}>Cancel</Button>
      </div>
    </form>
  );
}

interface WhatProps {
  readonly written: Written;
  readonly remember: Remembering;
  readonly problem: string | undefined;
  readonly onWrite: (written: Written) => void;
}

const CHOICES = ["arguments", "tool"] as const;

function What({ written, remember, problem, onWrite }: WhatProps) {
  const name = useId();
  return (
    <fieldset class="choices">
      <legend>Approve this call, and from now on without asking</legend>
      {CHOICES.map((what) => (
        <label key={what} class="choice">
          <input
            type="radio"
            name={name}
            checked={written.what === what}
            onChange={() => onWrite({ ...written, what })}
          />
          <span>{visible(remember[what].covers)}</span>
        </label>
      ))}
      {problem === undefined ? null : (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </fieldset>
  );
}

function untilHint({ expires_max_ms: maxMs }: Remembering): string {
  const most = maxMs === null ? "" : ` It ends after ${span(maxMs - Date.now())} at the latest.`;
  return `15m, 1h, 7d.${most}`;
}
