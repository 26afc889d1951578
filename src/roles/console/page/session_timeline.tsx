// A session's timeline on the page: its calls and what happened to it, newest first, beside a band that shows
// which taint it had from when on. What the band shows in colour is said in words at every step.

import type { Labels as LabelSet } from "../../../base/labels.ts";
import { labelsText } from "../../../client/answers.ts";
import { useExported } from "./audit_pages.ts";
import { recordWords, took } from "./audit_records.ts";
import type { Ask } from "./page.ts";
import {
  Badge,
  Button,
  CallLink,
  Empty,
  Fault,
  Labels,
  Loading,
  Moment,
  PeerText,
  type Tone,
} from "./parts.tsx";
import { addressOf } from "./route.ts";
import { type Step, type TimelineEntry, timeline } from "./timeline.ts";
import { Words } from "./words.tsx";

export interface TimelineProps {
  readonly ask: Ask;
  readonly role: string;
  /** undefined: of all sessions of the role. */
  readonly session: string | undefined;
}

export function Timeline({ ask, role, session }: TimelineProps) {
  const exported = useExported(ask, { role, session });
  const { entries, loading, fault, next, older, again } = exported;
  const shown = timeline(entries);
  return (
    <div class="timeline-box">
      {shown.length === 0 ? (
        <Nothing loading={loading} hasFault={fault !== undefined} />
      ) : (
        <ol class="timeline" aria-label="Newest first">
          {shown.map((entry) => (
            <Entry key={entry.seq} entry={entry} role={role} withSession={session === undefined} />
          ))}
        </ol>
      )}
      <Fault told={fault} retry={shown.length === 0 ? again : older} />
      <div class="more">
        {typeof next === "string" ? (
          <Button onClick={older} busy={loading}>
            Older
          </Button>
        ) : null}
        <Button kind="quiet" onClick={again} busy={loading}>
          Newest again
        </Button>
        <span role="status">{endWords(loading, next, shown.length)}</span>
      </div>
    </div>
  );
}

function Nothing({ loading, hasFault }: { loading: boolean; hasFault: boolean }) {
  if (loading) return <Loading what="the timeline" />;
  return hasFault ? null : <Empty>The audit has no records of it.</Empty>;
}

export function endWords(loading: boolean, next: string | null | undefined, count: number): string {
  if (loading) return typeof next === "string" ? `Looking further back than record ${next}…` : "Loading…";
  if (next === undefined) return "";
  if (next === null) return count === 0 ? "" : "That is all that the audit still has.";
  return count === 0 ? `Nothing was found back to record ${next}.` : `Looked back to record ${next}.`;
}

interface EntryProps {
  readonly entry: TimelineEntry;
  readonly role: string;
  readonly withSession: boolean;
}

function Entry({ entry, role, withSession }: EntryProps) {
  // A lowering is an entry of its own, which says it already.
  const rises = entry.steps.filter(({ from, how }) => from !== undefined && how !== "lowered");
  return (
    <li class={`moment-row ${bandClass(entry.after)}`}>
      <span class="band" aria-hidden="true" />
      <div class="moment-time">{entry.atMs === 0 ? null : <Moment ms={entry.atMs} how="clock" />}</div>
      <div class="moment-body">
        {entry.call === undefined ? null : <Call entry={entry} role={role} withSession={withSession} />}
        {entry.call === undefined ? <Event entry={entry} /> : <Events entry={entry} />}
        {rises.map((step) => (
          <StepLine key={`${step.how} ${labelsText(step.to)}`} step={step} entry={entry} />
        ))}
      </div>
    </li>
  );
}

/** Class and trust as two class names: the band's width tells the class, its colour the trust. */
function bandClass(labels: LabelSet | undefined): string {
  return labels === undefined
    ? "band-unknown"
    : `band-${labels.class} ${labels.untrusted ? "band-untrusted" : ""}`;
}

function Call({ entry, role, withSession }: EntryProps) {
  const { call = "", tool, records, tookMs } = entry;
  const session = records[0]?.session ?? "";
  return (
    <p class="moment-head">
      <a href={addressOf("calls", role, session, call)}>
        <PeerText text={tool ?? `call ${call}`} chars={120} />
      </a>
      {withSession ? <PeerText text={session} chars={60} /> : null}
      {tookMs === undefined ? null : <span class="muted">{took(tookMs)}</span>}
    </p>
  );
}

/** Records of a call that say nothing beyond what others of it say. */
const SILENT: ReadonlySet<string> = new Set(["taint"]);

function Events({ entry }: { entry: TimelineEntry }) {
  const said = entry.records.filter(({ kind }) => !SILENT.has(kind));
  const asked = said.some(({ kind }) => kind === "approval");
  const told = said
    .filter(({ kind, decision }) => !(asked && kind === "decision" && decision === "ask"))
    .map((record) => ({ seq: record.seq, ...recordWords(record) }));
  return (
    <ul class="moment-events">
      {told.map(({ seq, ...one }) => (
        <li key={seq}>
          <Said {...one} />
        </li>
      ))}
    </ul>
  );
}

function Event({ entry }: { entry: TimelineEntry }) {
  const [record] = entry.records;
  if (record === undefined) return <p>A record here can't be read: verify the audit.</p>;
  return (
    <p>
      <Said {...recordWords(record)} />
    </p>
  );
}

export function Said({ title, detail, tone }: { title: string; detail: string; tone: Tone }) {
  return (
    <span class="said">
      <Badge tone={tone}>
        <Words text={title} chars={160} />
      </Badge>{" "}
      {detail === "" ? null : (
        <span class="muted">
          <Words text={detail} />
        </span>
      )}
    </span>
  );
}

function StepLine({ step, entry }: { step: Step; entry: TimelineEntry }) {
  const { from, to, how, by } = step;
  if (from === undefined) return null;
  const foreign = by !== undefined && by.call !== entry.call;
  return (
    <p class={`step step-${how}`}>
      <strong>{stepWords(step)}</strong> <Labels labels={from} /> <span aria-hidden="true">→</span>
      <span class="unseen"> to </span> <Labels labels={to} />
      {foreign ? (
        <>
          {" by "}
          <CallLink {...by} />
        </>
      ) : null}
    </p>
  );
}

function stepWords({ from, to, how }: Step): string {
  if (how === "rose") return "This raised the taint:";
  const fell = from?.untrusted === true && !to.untrusted;
  return fell ? "Taint had been lowered meanwhile:" : "Taint had risen meanwhile, elsewhere in the role:";
}
