// One call: how it ended and why it was let through or not, its exact arguments, what its caller was answered.
// Cancelling one that goes on takes two acts.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible, visibleLine } from "../../../base/display.ts";
import { counted } from "../../../base/json_text.ts";
import { span } from "../../../base/time_text.ts";
import type { CallLine, WholeCall, Why } from "../../../client/answers.ts";
import { useAsked } from "./asked.ts";
import { DecisionPanel } from "./decision_panel.tsx";
import { useKeys } from "./keys.ts";
import type { PageProps, Told } from "./page.ts";
import {
  Badge,
  Button,
  Confirm,
  Facts,
  Fault,
  JsonText,
  Labels,
  Loading,
  Moment,
  Panel,
  PeerText,
  SessionLink,
  type Tone,
  userWords,
} from "./parts.tsx";

export interface CallViewProps extends Pick<PageProps, "ask" | "say"> {
  readonly role: string;
  readonly session: string;
  readonly call: string;
  readonly onLeave: () => void;
}

export function CallView({ role, session, call, ask, say, onLeave }: CallViewProps) {
  const named = { role, session, call };
  const shown = useAsked<WholeCall>(ask, "callgate.calls.show", named);
  const why = useAsked<Why>(ask, "callgate.calls.why", named);
  const head = useRef<HTMLHeadingElement>(null);
  const isThere = shown.told !== undefined;
  useLayoutEffect(() => {
    if (isThere) head.current?.focus();
  }, [isThere]);
  useKeys({ Escape: onLeave });
  const again = () => {
    shown.again();
    why.again();
  };
  const whole = shown.told?.ok === true ? shown.told.value : undefined;
  const decided = why.told?.ok === true ? why.told.value : undefined;
  return (
    <section class="split-view" aria-label="The open call">
      <div class="view-head">
        <Button kind="quiet" onClick={onLeave}>
          ← All calls
        </Button>
        <Button kind="quiet" busy={shown.loading} onClick={again}>
          Refresh
        </Button>
      </div>
      {shown.told === undefined ? (
        <Loading what="the call" />
      ) : (
        <h1 class="view-title" ref={head} tabIndex={-1}>
          <PeerText text={whole?.tool ?? decided?.tool ?? `Call ${call}`} />{" "}
          {whole === undefined ? null : <Outcome line={whole} />}
        </h1>
      )}
      {shown.told?.ok === false ? <NotKept told={shown.told} decided={decided} retry={again} /> : null}
      {whole === undefined ? null : (
        <>
          <Cancel whole={whole} ask={ask} say={say} onDone={again} />
          <About whole={whole} />
        </>
      )}
      {whole === undefined && decided === undefined ? null : <DecisionPanel why={why} />}
      {whole === undefined ? null : (
        <>
          <Panel title="Arguments">
            <JsonText text={whole.arguments} />
          </Panel>
          <Messages whole={whole} />
        </>
      )}
    </section>
  );
}

interface NotKeptProps {
  readonly told: Told<WholeCall>;
  readonly decided: Why | undefined;
  readonly retry: () => void;
}

/** A denied call is in the audit alone: that is no fault. */
function NotKept({ told, decided, retry }: NotKeptProps) {
  if (decided === undefined) return <Fault told={told} retry={retry} />;
  return (
    <p class="notice notice-plain" role="note">
      The call itself is not kept{decided.denied === null ? "" : ", since it was denied"}: there is only what
      was decided.
    </p>
  );
}

const STATE_TONES: Readonly<Record<string, Tone>> = { running: "info", waiting: "warn", unknown: "bad" };
const STATUS_TONES: Readonly<Record<string, Tone>> = { result: "good", failed: "bad", denied: "bad" };

/** How a call ended, or that it has not. */
export function Outcome({
  line: { state, status, code },
}: {
  line: Pick<CallLine, "state" | "status" | "code">;
}) {
  if (status === null)
    return <Badge tone={STATE_TONES[state] ?? "plain"}>{OUTCOME_WORDS[state] ?? state}</Badge>;
  return (
    <Badge tone={STATUS_TONES[status] ?? "plain"}>
      {status}
      {code === null ? "" : `: ${visibleLine(code)}`}
    </Badge>
  );
}

const OUTCOME_WORDS: Readonly<Record<string, string>> = {
  waiting: "waits for a person",
  unknown: "outcome unknown",
};

/** How long it took, or has taken so far. */
export function tookWords({ asked_at_ms: asked, ended_at_ms: ended }: CallLine, nowMs: number): string {
  const ms = Math.max(0, (ended ?? nowMs) - asked);
  return ms < 1000 ? `${ms} ms` : span(ms);
}

function About({ whole }: { whole: WholeCall }) {
  return (
    <Panel title="About it">
      <Facts
        rows={[
          ["Role", `${visible(whole.role)}, ${userWords(whole.uid)}`],
          ["Session", <SessionLink key="session" role={whole.role} session={whole.session} />],
          ["Call", <PeerText key="call" text={whole.call} />],
          ["Asked", <Moment key="asked" ms={whole.asked_at_ms} how="both" />],
          [
            "Ended",
            whole.ended_at_ms === null ? undefined : (
              <>
                <Moment ms={whole.ended_at_ms} how="both" />, after {tookWords(whole, whole.ended_at_ms)}
              </>
            ),
          ],
          ["Labels", <Labels key="labels" labels={whole.labels} />],
        ]}
      />
      {whole.state === "unknown" ? (
        <p class="hint">
          The broker stopped before it heard how the call ended: it may have run. Look at what the tool acts
          on, then settle it with the command: callgate calls settle.
        </p>
      ) : null}
    </Panel>
  );
}

function Messages({ whole: { messages, messages_cut: cut, state } }: { whole: WholeCall }) {
  if (messages.length === 0)
    return state === "ended" ? (
      <Panel title="Answer">
        <p class="muted">
          {cut === true ? "Too long to be shown here: use the command." : "No message is kept."}
        </p>
      </Panel>
    ) : null;
  return (
    <Panel title={messages.length === 1 ? "Answer" : `Answer, in ${counted(messages.length, "message")}`}>
      <div class="messages">
        {messages.map((text) => (
          <Message text={text} />
        ))}
      </div>
      {cut === true ? <p class="hint">More messages are kept than are shown here.</p> : null}
    </Panel>
  );
}

interface MessageBody {
  readonly content?: unknown;
  readonly message?: unknown;
  readonly reason?: unknown;
}

function Message({ text }: { text: string }) {
  const { content, message, reason } = bodyOf(text);
  const words = [content, message, reason].find((one) => typeof one === "string");
  if (typeof words !== "string") return <JsonText text={text} />;
  return isStructured(words) ? <JsonText text={words} /> : <LongText text={words} />;
}

function bodyOf(text: string): MessageBody {
  try {
    const { body } = JSON.parse(text) as { readonly body?: MessageBody };
    return body ?? {};
  } catch {
    return {};
  }
}

function isStructured(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const SHOWN_CHARS = 4000;

/** A text with its lines, its rest on demand. */
function LongText({ text }: { text: string }) {
  const [opened, setOpened] = useState(false);
  const isLong = text.length > SHOWN_CHARS;
  return (
    <div class="json">
      <pre>{visible(opened || !isLong ? text : text.slice(0, SHOWN_CHARS).toWellFormed())}</pre>
      {isLong ? (
        <Button onClick={() => setOpened(!opened)}>
          {opened ? "Show less" : `Show all ${counted(text.length, "character")}`}
        </Button>
      ) : null}
    </div>
  );
}

interface CancelProps extends Pick<PageProps, "ask" | "say"> {
  readonly whole: WholeCall;
  readonly onDone: () => void;
}

interface Cancelled {
  readonly cancelled: boolean;
  readonly provider_told?: boolean;
}

function Cancel({ whole, ask, say, onDone }: CancelProps) {
  const [busy, setBusy] = useState(false);
  const { role, session, call, state } = whole;
  if (state !== "running" && state !== "waiting") return null;
  const cancel = async () => {
    setBusy(true);
    const told = await ask<Cancelled>("callgate.calls.cancel", { role, session, call });
    setBusy(false);
    if (!told.ok) say(told.why, "bad");
    else if (!told.value.cancelled) say("There was nothing to cancel: it had ended.", "bad");
    else say(told.value.provider_told === true ? "Cancelled; the provider was told." : "Cancelled.");
    onDone();
  };
  const consequence =
    state === "waiting"
      ? "Its question is withdrawn, nothing has run, and its caller hears that it was cancelled."
      : "Its caller hears that it was cancelled. What the provider has done already stays done.";
  return (
    <div class="view-acts">
      <Confirm
        label="Cancel this call"
        question={consequence}
        verb="Cancel the call"
        back="Let it go on"
        busy={busy}
        onConfirm={() => void cancel()}
      />
    </div>
  );
}
