// Sessions: all of them as a list, and one with its taint, what raised it and its life so far. The list is as
// it was when it was asked for: rows do not move under the pointer.

import { useState } from "preact/hooks";
import type { SessionLine, WholeSession } from "../../../client/answers.ts";
import { useAsked } from "./asked.ts";
import { Choice, Search } from "./inputs.tsx";
import { OpenedHead } from "./opened_head.tsx";
import type { PageProps } from "./page.ts";
import {
  Badge,
  Button,
  CallLink,
  Empty,
  Facts,
  Fault,
  Labels,
  Loading,
  Moment,
  Panel,
  PeerText,
  type Tone,
} from "./parts.tsx";
import { addressOf } from "./route.ts";
import { Endorse, Freeze } from "./session_acts.tsx";
import { Timeline } from "./session_timeline.tsx";
import { type Column, Table } from "./table.tsx";
import { Words } from "./words.tsx";

export function SessionsPage(props: PageProps) {
  const [role, session] = props.words;
  if (role === undefined || session === undefined) return <SessionList {...props} />;
  return <OneSession key={`${role} ${session}`} {...props} role={role} session={session} />;
}

/** As many as the broker gives at once. */
const ROWS_MAX = 500;

const STATE_TONES: Readonly<Record<string, Tone>> = { open: "good", frozen: "bad" };

function State({ state }: { state: string }) {
  return (
    <Badge tone={STATE_TONES[state] ?? "plain"}>
      <Words text={state} chars={40} />
    </Badge>
  );
}

const COLUMNS: readonly Column<SessionLine>[] = [
  { head: "Session", cell: ({ session }) => <PeerText text={session} chars={80} /> },
  { head: "Role", cell: ({ role }) => <PeerText text={role} chars={60} />, kind: "tight" },
  { head: "State", cell: ({ state }) => <State state={state} /> },
  { head: "Taint", cell: ({ taint }) => <Labels labels={taint} /> },
  { head: "Running", cell: ({ running }) => running, kind: "number" },
  { head: "Waiting", cell: ({ waiting }) => waiting, kind: "number" },
  {
    head: "Last used",
    cell: ({ last_used_at_ms: ms }) => (ms === null ? "never" : <Moment ms={ms} />),
    kind: "tight",
  },
];

const idOf = ({ role, session }: SessionLine) => `${role} ${session}`;

function SessionList({ live, ask, say, go }: PageProps) {
  const [role, setRole] = useState("");
  const [wanted, setWanted] = useState("");
  const args = { role: role === "" ? undefined : role, limit: ROWS_MAX };
  const { told, loading, again } = useAsked<{ readonly sessions: readonly SessionLine[] }>(
    ask,
    "callgate.sessions.list",
    args,
  );
  const roles = live.status?.roles ?? [];
  const frozen = roles.find((one) => one.role === role)?.frozen ?? false;
  const all = told?.ok ? told.value.sessions : [];
  const rows = all.filter((one) => fits(one, wanted));
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1}>Sessions</h1>
        <div class="buttons">
          {role === "" ? null : (
            <Freeze
              key={role}
              ask={ask}
              say={say}
              role={role}
              session={undefined}
              frozen={frozen}
              onDone={again}
            />
          )}
          <Button onClick={again} busy={loading}>
            Refresh
          </Button>
        </div>
      </header>
      <div class="filters">
        <Choice
          name="Role"
          value={role}
          onChange={setRole}
          none="All roles"
          options={roles.map((one) => one.role)}
        />
        <Search name="Filter" value={wanted} onChange={setWanted} placeholder="Name, state or taint" />
      </div>
      <Fault told={told} retry={again} />
      {told === undefined && loading ? <Loading what="sessions" /> : null}
      {told?.ok && rows.length === 0 ? <Empty>{emptyWords(all.length)}</Empty> : null}
      {rows.length === 0 ? null : (
        <Table
          caption="Sessions, the latest used first"
          columns={COLUMNS}
          rows={rows}
          idOf={idOf}
          onOpen={(one) => go("sessions", one.role, one.session)}
        />
      )}
      {told?.ok ? <p class="more">{countWords(rows.length, all.length)}</p> : null}
    </>
  );
}

function fits({ role, session, state, taint }: SessionLine, wanted: string): boolean {
  const trust = taint.untrusted ? "untrusted" : "trusted";
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const own = [role.toLowerCase(), session.toLowerCase(), state, taint.class];
  return words.every((word) => word === trust || own.some((text) => text.includes(word)));
}

function emptyWords(all: number): string {
  return all === 0 ? "No role has a session yet." : "No session fits the filter.";
}

function countWords(shown: number, all: number): string {
  if (all >= ROWS_MAX)
    return `${shown} of the ${all} that were used last; choose a role to see more of its own.`;
  return shown === all ? `${all} sessions.` : `${shown} of ${all} sessions.`;
}

interface OneProps extends PageProps {
  readonly role: string;
  readonly session: string;
}

function OneSession(props: OneProps) {
  const { ask, role, session } = props;
  const [done, setDone] = useState(0);
  const { told, loading, again } = useAsked<WholeSession>(ask, "callgate.sessions.show", { role, session });
  return (
    <>
      <OpenedHead
        page="sessions"
        back="All sessions"
        title={
          <>
            <span class="muted">Session</span> <PeerText text={session} chars={120} />
          </>
        }
      >
        <Button onClick={again} busy={loading}>
          Refresh
        </Button>
      </OpenedHead>
      <Fault told={told} retry={again} />
      {told === undefined && loading ? <Loading what="the session" /> : null}
      {told?.ok ? (
        <Shown
          {...props}
          whole={told.value}
          onDone={() => {
            setDone(done + 1);
            again();
          }}
        />
      ) : null}
      <TimelinePanel
        key={done}
        {...props}
        isShared={told?.ok === true && told.value.taint_scope !== "session"}
      />
    </>
  );
}

function Shown({ whole, onDone, ...props }: OneProps & { whole: WholeSession; onDone: () => void }) {
  const { ask, say, role, session, live } = props;
  const waiting = (live.questions?.approvals ?? []).filter(
    (one) => one.role === role && one.session === session && one.state === "pending",
  );
  return (
    <div class="columns">
      <Panel title="Taint" aside={<span class="muted">version {String(whole.version)}</span>}>
        <TaintFacts whole={whole} />
        <div class="buttons acts">
          <Endorse ask={ask} say={say} session={whole} onDone={onDone} />
        </div>
      </Panel>
      <Panel title="Session" aside={<State state={whole.state} />}>
        <SessionFacts whole={whole} />
        {waiting.map((one) => (
          <p key={one.approval} class="notice notice-warn">
            <span>
              A person is asked about <PeerText text={one.tool} chars={80} />
            </span>
            <a href={addressOf("questions", one.approval)}>Look at the question</a>
          </p>
        ))}
        <div class="buttons acts">
          <Freeze
            ask={ask}
            say={say}
            role={role}
            session={session}
            frozen={whole.state === "frozen"}
            onDone={onDone}
          />
        </div>
      </Panel>
    </div>
  );
}

function TaintFacts({ whole }: { whole: WholeSession }) {
  const { taint, raised_by: by, role_taint: ofRole, taint_scope: scope } = whole;
  const shared = scope === "session" ? undefined : "All sessions of the role share it.";
  return (
    <Facts
      rows={[
        [
          "Now",
          <>
            <Labels labels={taint} /> {shared === undefined ? null : <span class="hint">{shared}</span>}
          </>,
        ],
        ["Raised by", by === null ? "nothing that is known" : <CallLink {...by} />],
        [
          "Role's",
          scope !== "session" || ofRole === undefined ? undefined : (
            <>
              <Labels labels={ofRole.taint} /> <span class="hint">The session is never below it.</span>
            </>
          ),
        ],
      ]}
    />
  );
}

function SessionFacts({ whole }: { whole: WholeSession }) {
  const { role, opened_by: opener, request, expires_at_ms: expires, watermark } = whole;
  const paused = whole.questions_paused_until_ms ?? null;
  return (
    <Facts
      rows={[
        ["Role", <PeerText key="role" text={role} />],
        ["Opened by", opener === null ? "the role itself" : <PeerText text={opener} />],
        ["Request", request === null ? undefined : <PeerText text={request} lines />],
        ["Expires", expires === null ? undefined : <Moment ms={expires} how="both" />],
        [
          "Oldest calls",
          (watermark ?? null) === null ? undefined : `ids up to ${watermark} are never run again`,
        ],
        [
          "Questions",
          paused === null ? undefined : (
            <>
              paused until <Moment ms={paused} how="both" />: too many were refused
            </>
          ),
        ],
      ]}
    />
  );
}

function TimelinePanel({ ask, role, session, isShared }: OneProps & { isShared: boolean }) {
  const [ofRole, setOfRole] = useState(false);
  const aside = isShared ? (
    <Button kind="quiet" onClick={() => setOfRole(!ofRole)}>
      {ofRole ? "Only this session" : "With the role's other sessions"}
    </Button>
  ) : null;
  return (
    <Panel title="Timeline" aside={aside}>
      <BandLegend />
      <Timeline key={String(ofRole)} ask={ask} role={role} session={ofRole ? undefined : session} />
    </Panel>
  );
}

const BANDS = [
  ["public", "public"],
  ["internal", "internal"],
  ["confidential", "confidential"],
  ["restricted", "restricted"],
] as const;

/** What the band beside the timeline shows; the steps say the same in words. */
function BandLegend() {
  return (
    <p class="band-legend">
      <span class="muted">The bar shows the taint from each entry on:</span>
      {BANDS.map(([name, words]) => (
        <span key={name} class={`band-key band-${name}`}>
          <span class="band" aria-hidden="true" /> {words}
        </span>
      ))}
      <span class="band-key band-public band-untrusted">
        <span class="band" aria-hidden="true" /> untrusted
      </span>
    </p>
  );
}
