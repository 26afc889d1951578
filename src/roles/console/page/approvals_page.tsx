// The questions that wait for a person, and the one that is open. What arrives is added to the list's end and
// nowhere else: neither the focus nor the open question changes but by the person's own act.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { visible, visibleLine } from "../../../base/display.ts";
import { counted } from "../../../base/json_text.ts";
import type { Question, WholeQuestion } from "../../../client/answers.ts";
import { useKeys } from "./keys.ts";
import type { PageProps } from "./page.ts";
import {
  actorWords,
  Badge,
  Button,
  Countdown,
  Empty,
  Fault,
  Field,
  Loading,
  Moment,
  PeerText,
  type Tone,
} from "./parts.tsx";
import { AnswerBar, ChangeList } from "./question_answer.tsx";
import { type QuestionList, useEnded, useQuestions } from "./question_source.ts";
import { Effect, QuestionView } from "./question_view.tsx";
import { useShownQuestion } from "./shown_question.ts";
import { type Column, focusRow, Table } from "./table.tsx";

export function ApprovalsPage(props: PageProps) {
  const { live, ask, words, go, say } = props;
  const [id] = words;
  const [role, setRole] = useState("");
  const [text, setText] = useState("");
  const list = useQuestions(live, ask, role);
  const open = (question: Question) => go("questions", question.approval);
  useKeys({
    j: () => focusRow(1),
    k: () => focusRow(-1),
    ArrowDown: () => focusRow(1),
    ArrowUp: () => focusRow(-1),
  });
  return (
    <div class={id === undefined ? "split" : "split split-open"}>
      <section class="split-list" aria-label="Questions">
        <div class="page-head">
          <h1>Questions</h1>
          <p class="muted">{waitingWords(list)}</p>
        </div>
        <div class="filters filters-two">
          <Field name="Filter">
            {(field) => (
              <input
                {...field}
                type="search"
                placeholder="role, session, tool, destination"
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            )}
          </Field>
          <RoleFilter live={live} role={role} onRole={setRole} />
        </div>
        <Waiting list={list} text={text} current={id} onOpen={open} />
        <Ended live={live} ask={ask} current={id} onOpen={open} />
      </section>
      {id === undefined ? null : (
        <Open key={id} id={id} live={live} ask={ask} say={say} onLeave={() => go("questions")} />
      )}
    </div>
  );
}

function waitingWords({ questions, total, more }: QuestionList): string {
  if (questions === undefined) return "";
  if (total === 0) return "none waits";
  const count = total.toLocaleString("en-US");
  return more
    ? `${count} wait, ${questions.length.toLocaleString("en-US")} shown, oldest first`
    : `${count} ${total === 1 ? "waits" : "wait"}, oldest first`;
}

function RoleFilter({
  live,
  role,
  onRole,
}: Pick<PageProps, "live"> & { role: string; onRole: (role: string) => void }) {
  const known = live.status?.roles?.map((one) => one.role) ?? [];
  const roles = role === "" || known.includes(role) ? known : [...known, role];
  return (
    <Field name="Role">
      {(field) => (
        <select {...field} value={role} onChange={(event) => onRole(event.currentTarget.value)}>
          <option value="">all</option>
          {roles.map((one) => (
            <option key={one} value={one}>
              {visibleLine(one)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface ListProps {
  readonly current: string | undefined;
  readonly onOpen: (question: Question) => void;
}

function Waiting({ list, text, current, onOpen }: ListProps & { list: QuestionList; text: string }) {
  if (list.fault !== undefined) return <Fault told={list.fault} />;
  if (list.questions === undefined) return <Loading what="questions" />;
  const fits = list.questions.filter((question) => isFor(question, text));
  return (
    <>
      {fits.length === 0 ? (
        <Empty>
          {list.questions.length === 0
            ? "No question waits. A new one appears here by itself."
            : `None of the ${counted(list.questions.length, "question")} that are shown fits.`}
        </Empty>
      ) : (
        <Table
          caption="Questions that wait for an answer, oldest first"
          columns={current === undefined ? WAITING_COLUMNS : BESIDE_COLUMNS}
          rows={fits}
          idOf={({ approval }) => approval}
          current={current}
          onOpen={onOpen}
        />
      )}
      {list.more ? (
        <div class="more">
          <Button onClick={list.showMore}>Show more</Button>
          {text === "" ? null : <span>The filter looks through what is shown.</span>}
        </div>
      ) : null}
    </>
  );
}

/** Every word of the filter somewhere in it, whatever the case. */
function isFor({ role, session, tool, destinations, approval }: Question, text: string): boolean {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) return true;
  const all = `${role}\n${session}\n${tool}\n${approval}\n${JSON.stringify(destinations)}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

const WAITING_COLUMNS: readonly Column<Question>[] = [
  { head: "Tool", cell: ({ tool }) => <PeerText text={tool} chars={80} /> },
  { head: "Effect", cell: ({ effect }) => <Effect effect={effect} />, kind: "tight" },
  { head: "Who", cell: (question) => <Who question={question} /> },
  {
    head: "Where to",
    cell: ({ destinations }) => <Destinations destinations={destinations} />,
    kind: "wide",
  },
  { head: "Asked", cell: ({ asked_at_ms: ms }) => <Moment ms={ms} />, kind: "tight" },
  { head: "Time left", cell: ({ expires_at_ms: ms }) => <Countdown untilMs={ms} />, kind: "tight" },
];

/** Where another question is open beside the list. */
const BESIDE_COLUMNS: readonly Column<Question>[] = [
  {
    head: "Tool",
    cell: ({ tool, effect }) => (
      <>
        <PeerText text={tool} chars={80} /> <Effect effect={effect} />
      </>
    ),
  },
  {
    head: "Who, where to",
    cell: (question) => (
      <>
        <Who question={question} />
        <Destinations destinations={question.destinations} />
      </>
    ),
    kind: "wide",
  },
  { head: "Time left", cell: ({ expires_at_ms: ms }) => <Countdown untilMs={ms} />, kind: "tight" },
];

function Who({ question: { role, session } }: { question: Question }) {
  return (
    <>
      {visibleLine(role)}
      <span class="muted">
        {" / "}
        <PeerText text={session} chars={40} />
      </span>
    </>
  );
}

function Destinations({ destinations }: Pick<Question, "destinations">) {
  const all = Object.entries(destinations);
  if (all.length === 0) return <span class="muted">none declared</span>;
  return (
    <>
      {all.map(([name, value]) => (
        <div key={name}>
          <span class="muted">{visibleLine(name, 40)}=</span>
          <PeerText text={typeof value === "string" ? value : JSON.stringify(value)} chars={120} />
        </div>
      ))}
    </>
  );
}

const STATE_TONES: Readonly<Record<string, Tone>> = { approved: "good", refused: "bad", expired: "warn" };

function State({ state }: { state: string }) {
  return <Badge tone={STATE_TONES[state] ?? "plain"}>{state}</Badge>;
}

const ENDED_COLUMNS: readonly Column<Question>[] = [
  { head: "Tool", cell: ({ tool }) => <PeerText text={tool} chars={80} /> },
  { head: "State", cell: ({ state }) => <State state={state} />, kind: "tight" },
  { head: "Who", cell: (question) => <Who question={question} /> },
  {
    head: "Decided by",
    cell: ({ decided_by: by }) => (by === null ? <span class="muted">nobody</span> : actorWords(by)),
  },
  {
    head: "When",
    cell: ({ decided_at_ms: at, expires_at_ms: expires, state }) =>
      at === null && state !== "expired" ? null : <Moment ms={at ?? expires} />,
    kind: "tight",
  },
];

function Ended({ live, ask, current, onOpen }: ListProps & Pick<PageProps, "live" | "ask">) {
  const ended = useEnded(live, ask);
  if (ended.length === 0) return null;
  return (
    <div class="ended">
      <h2>No longer waiting</h2>
      <Table
        caption="Questions that were answered or ended otherwise, latest first"
        columns={current === undefined ? ENDED_COLUMNS : ENDED_COLUMNS.filter(({ head }) => head !== "Who")}
        rows={ended}
        idOf={({ approval }) => approval}
        current={current}
        onOpen={onOpen}
      />
    </div>
  );
}

interface OpenProps extends Pick<PageProps, "live" | "ask" | "say"> {
  readonly id: string;
  readonly onLeave: () => void;
}

function Open({ id, live, ask, say, onLeave }: OpenProps) {
  const given = useShownQuestion(id, live, ask);
  const { shown, now, seen, fault } = given;
  const head = useRef<HTMLHeadingElement>(null);
  const isThere = shown !== undefined;
  useLayoutEffect(() => {
    if (isThere) head.current?.focus();
  }, [isThere]);
  const isOpen = now?.state === "pending";
  useKeys(isOpen ? {} : { Escape: onLeave });
  return (
    <section class="split-view" aria-label="The open question">
      <div class="view-head">
        <Button kind="quiet" onClick={onLeave}>
          ← All questions
        </Button>
      </div>
      {fault === undefined ? null : <Fault told={fault} retry={given.refresh} />}
      {shown === undefined || now === undefined ? (
        fault === undefined ? (
          <Loading what="the question" />
        ) : null
      ) : (
        <>
          <h1 class="view-title" ref={head} tabIndex={-1}>
            <PeerText text={shown.tool} /> <Effect effect={shown.effect} />
          </h1>
          <p class="view-sub">
            <strong>{visible(shown.role)}</strong> asks in session{" "}
            <PeerText text={shown.session} chars={80} />, <Moment ms={shown.asked_at_ms} />
          </p>
          {isOpen ? null : <EndNotice question={now} />}
          {isOpen && seen.sentences.length > 0 ? <SeenNotice sentences={seen.sentences} /> : null}
          <QuestionView question={isOpen ? shown : { ...shown, state: now.state }} />
          {isOpen ? <AnswerBar given={given} question={shown} ask={ask} say={say} onLeave={onLeave} /> : null}
        </>
      )}
    </section>
  );
}

function SeenNotice({ sentences }: { sentences: readonly string[] }) {
  return (
    <div class="notice notice-warn">
      <div>
        <strong>Changed since you first looked:</strong>
        <ChangeList sentences={sentences} />
      </div>
    </div>
  );
}

const END_WORDS: Readonly<Record<string, string>> = {
  approved: "Approved",
  refused: "Refused",
  expired: "Expired: nobody answered in time",
  withdrawn: "Withdrawn by its caller, or with its session",
  void: "Void: the policy no longer lets the call run",
};

function EndNotice({
  question: { state, decided_by: by, decided_at_ms: at, expires_at_ms: expires },
}: {
  question: WholeQuestion;
}) {
  const tone = state === "approved" ? "notice-good" : state === "refused" ? "" : "notice-plain";
  const atMs = at ?? (state === "expired" ? expires : null);
  return (
    <div class={`notice ${tone}`} role="status">
      <p>
        <strong>{END_WORDS[state] ?? visible(state)}</strong>
        {by === null ? null : <> by {actorWords(by)}</>}
        {atMs === null ? null : (
          <>
            {", "}
            <Moment ms={atMs} how="both" />
          </>
        )}
        . Nothing can be answered here any more.
      </p>
    </div>
  );
}
