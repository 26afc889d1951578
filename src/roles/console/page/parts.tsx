// What all pages are made of: peers' text made visible, labels, times, buttons, fields, confirmations.
// Beside it: tables (table.tsx), asking the broker (asked.ts), addresses (route.ts), passing time (ticking.ts).
// Invariants: peers' text is a text node, escaped by `visible`; nothing is told by colour alone; whatever
// decides something asks once more, at another place than where it was asked for.

import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible, visibleLine } from "../../../base/display.ts";
import { counted, FOLDED, shownJson, UNFOLDED } from "../../../base/json_text.ts";
import { span } from "../../../base/time_text.ts";
import type { Actor, CallName, Labelled } from "../../../client/answers.ts";
import type { Told } from "./page.ts";
import { addressOf } from "./route.ts";
import { useTicked } from "./ticking.ts";

export type Tone = "plain" | "good" | "warn" | "bad" | "info";

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}

/** The class, and whether anything untrusted is in it, in words. */
export function Labels({ labels }: { labels: Labelled }) {
  return (
    <span class="labels">
      <Badge tone={CLASS_TONES[labels.class] ?? "plain"}>{visibleLine(labels.class)}</Badge>
      {labels.untrusted ? <Badge tone="warn">untrusted</Badge> : <Badge>trusted</Badge>}
    </span>
  );
}

const CLASS_TONES: Readonly<Record<string, Tone>> = { confidential: "info", restricted: "bad" };

/** Text that a peer chose. On one line and folded to `chars`, or with its `lines`. */
export function PeerText({ text, lines, chars }: { text: string; lines?: boolean; chars?: number }) {
  if (lines === true) return <span class="peer peer-lines">{visible(text)}</span>;
  return <span class="peer">{visibleLine(text, chars ?? 2000)}</span>;
}

/** JSON as it was written; what is long is folded until a person asks for all of it. */
export function JsonText({ text, full }: { text: string; full?: boolean }) {
  const [opened, setOpened] = useState(false);
  const whole = full === true || opened;
  const { lines, folded } = shownJson(text, whole ? UNFOLDED : FOLDED);
  return (
    <div class="json">
      <pre>{lines.join("\n")}</pre>
      {folded || opened ? (
        <Button onClick={() => setOpened(!opened)}>
          {opened ? "Show less" : `Show all ${counted(text.length, "character")}`}
        </Button>
      ) : null}
    </div>
  );
}

/** A moment: `3 min ago`, the clock's time, or both. Exact on hovering, and for programs. */
export function Moment({ ms, how = "ago" }: { ms: number; how?: "ago" | "clock" | "both" }) {
  const text = useTicked((nowMs) => momentText(ms, nowMs, how));
  const date = new Date(ms);
  const iso = Number.isNaN(date.getTime()) ? undefined : date.toISOString();
  return (
    <time class="moment" dateTime={iso} title={iso}>
      {text}
    </time>
  );
}

function momentText(ms: number, nowMs: number, how: "ago" | "clock" | "both"): string {
  const far = coarse(Math.abs(nowMs - ms));
  const away = Math.abs(nowMs - ms) < 1000 ? "now" : ms < nowMs ? `${far} ago` : `in ${far}`;
  if (how === "ago") return away;
  return how === "clock" ? clockText(ms, nowMs) : `${clockText(ms, nowMs)} (${away})`;
}

/** Local: `13:14:05`, with its date where that is another day. */
export function clockText(ms: number, nowMs: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  if (date.toDateString() === new Date(nowMs).toDateString()) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

const MINUTE_MS = 60_000;

/** Without the seconds beside minutes, so that a table of thousands is not drawn anew every second. */
function coarse(ms: number): string {
  return ms < MINUTE_MS ? span(ms) : span(Math.floor(ms / MINUTE_MS) * MINUTE_MS);
}

const SPOKEN_AT_MS: readonly number[] = [10_000, 60_000, 300_000];

/** How long is left. `spoken`: a screen reader hears of it at five minutes, a minute, ten seconds and at the end. */
export function Countdown({ untilMs, spoken }: { untilMs: number; spoken?: boolean }) {
  const length = spoken === true ? span : coarse;
  const text = useTicked((nowMs) => (untilMs <= nowMs ? "expired" : `${length(untilMs - nowMs)} left`));
  const stage = useTicked((nowMs) => SPOKEN_AT_MS.find((ms) => untilMs - nowMs <= ms) ?? 0);
  const over = text === "expired";
  const tone = over || stage === 10_000 ? "bad" : stage === 60_000 ? "warn" : "plain";
  return (
    <span class={`countdown countdown-${tone}`}>
      <time dateTime={new Date(untilMs).toISOString()} title={new Date(untilMs).toISOString()}>
        {text}
      </time>
      {spoken === true ? (
        <span class="unseen" role="status">
          {over ? "expired" : stage === 0 ? "" : `less than ${span(stage)} left`}
        </span>
      ) : null}
    </span>
  );
}

export interface ButtonProps {
  readonly onClick: () => void;
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly disabled?: boolean;
  /** Something is on its way: it can't be pressed again meanwhile. */
  readonly busy?: boolean;
  /** The key that does the same, shown beside the words. */
  readonly hotkey?: string;
  readonly label?: string;
  readonly children: ComponentChildren;
}

export function Button({ onClick, kind = "plain", disabled, busy, hotkey, label, children }: ButtonProps) {
  return (
    <button
      type="button"
      class={`button button-${kind}`}
      disabled={disabled === true || busy === true}
      aria-busy={busy === true}
      aria-label={label}
      aria-keyshortcuts={hotkey}
      onClick={onClick}
    >
      {children}
      {hotkey === undefined ? null : (
        <span class="hotkey" aria-hidden="true">
          {hotkey}
        </span>
      )}
    </button>
  );
}

export interface ConfirmProps {
  /** On the first button. */
  readonly label: ComponentChildren;
  /** What will come of it, in a sentence. */
  readonly question: ComponentChildren;
  /** On the second one, which does it. */
  readonly verb: string;
  /** On the button that does nothing; `Cancel` where it is left out. */
  readonly back?: string;
  readonly kind?: "primary" | "danger";
  readonly disabled?: boolean;
  readonly busy?: boolean;
  readonly onConfirm: () => void;
}

/** A button that asks, in place, before it does anything. */
export function Confirm(props: ConfirmProps) {
  const { label, question, verb, back = "Cancel", kind = "danger", disabled, busy, onConfirm } = props;
  const [asking, setAsking] = useState(false);
  const first = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (asking) first.current?.querySelector("button")?.focus();
  }, [asking]);
  if (!asking)
    return (
      <Button onClick={() => setAsking(true)} disabled={disabled === true} busy={busy === true}>
        {label}
      </Button>
    );
  return (
    <div class="confirm" ref={first}>
      <p>{question}</p>
      <div class="buttons">
        <Button onClick={() => setAsking(false)}>{back}</Button>
        <Button
          kind={kind}
          onClick={() => {
            setAsking(false);
            onConfirm();
          }}
        >
          {verb}
        </Button>
      </div>
    </div>
  );
}

/** What an input takes, so that its name, hint and problem belong to it. */
export interface FieldGiven {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": boolean;
}

export interface FieldProps {
  readonly name: string;
  readonly hint?: ComponentChildren;
  readonly problem?: string | undefined;
  readonly children: (given: FieldGiven) => JSX.Element;
}

export function Field({ name, hint, problem, children }: FieldProps) {
  const id = useId();
  const described = [hint === undefined ? "" : `${id}-hint`, problem === undefined ? "" : `${id}-problem`];
  const by = described.join(" ").trim();
  return (
    <div class="field">
      <label htmlFor={id}>{name}</label>
      {children({
        id,
        "aria-describedby": by === "" ? undefined : by,
        "aria-invalid": problem !== undefined,
      })}
      {hint === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {problem === undefined ? null : (
        <p class="problem" id={`${id}-problem`}>
          {problem}
        </p>
      )}
    </div>
  );
}

/** Modal: the rest of the page can't be reached until it is closed, which Escape does too. */
export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const { title, onClose, children } = props;
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" label="Close" onClick={onClose}>
          ✕
        </Button>
      </header>
      {children}
    </dialog>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="empty" role="status">
      Loading {what}…
    </p>
  );
}

/** Why something is not there, in words. `retry` asks again. */
export function Fault({ told, retry }: { told: Told<unknown> | undefined; retry?: () => void }) {
  if (told === undefined || told.ok) return null;
  return (
    <div class="fault" role="alert">
      <p>{visible(told.why)}</p>
      {retry === undefined ? null : <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Names and values, one below the other. What is undefined is left out. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren | undefined])[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

export function Panel({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A link to a call; without its role only the words. */
export function CallLink({ role, session, call }: CallName) {
  const words = `${role === undefined ? "" : `${role}, `}session ${session}, call ${call}`;
  if (role === undefined) return <PeerText text={words} />;
  return (
    <a href={addressOf("calls", role, session, call)}>
      <PeerText text={words} />
    </a>
  );
}

export function SessionLink({ role, session }: { role: string; session: string }) {
  return (
    <a href={addressOf("sessions", role, session)}>
      <PeerText text={session} chars={80} />
    </a>
  );
}

/** Who did something: a role, and the user it ran as. */
export function actorWords(actor: Actor | string | null | undefined): string {
  if (actor === null || actor === undefined) return "nobody";
  if (typeof actor === "string") return visibleLine(actor);
  return `${visibleLine(actor.role)} (${userWords(actor.uid)})`;
}

export function userWords(uid: number | null): string {
  return uid === null ? "user unknown" : `uid ${uid}`;
}
