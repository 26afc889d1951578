// The calls that are kept: looked up by who asked, what and how it ended, newest first, and one of them open.

import { useEffect, useState } from "preact/hooks";
import { visibleLine } from "../../../base/display.ts";
import { FAIL_CODES } from "../../../base/faults.ts";
import { counted } from "../../../base/json_text.ts";
import type { CallLine } from "../../../client/answers.ts";
import {
  ANY_CALL,
  type FoundCalls,
  idOfCall,
  type Search,
  STATES,
  STATUSES,
  useCalls,
} from "./call_search.ts";
import { CallView, Outcome, tookWords } from "./call_view.tsx";
import { useKeys } from "./keys.ts";
import type { PageProps } from "./page.ts";
import {
  Button,
  clockText,
  Empty,
  Fault,
  Field,
  type FieldGiven,
  Loading,
  Moment,
  PeerText,
} from "./parts.tsx";
import { type Column, focusRow, Table } from "./table.tsx";

/** Words: a call's role, session and id; or one state alone, to look for. */
export function CallsPage({ live, ask, words, go, say }: PageProps) {
  const [first = "", session, call] = words;
  const wantedState = words.length === 1 && STATES.some((state) => state === first) ? first : undefined;
  const [search, setSearch] = useState<Search>({ ...ANY_CALL, state: wantedState ?? "" });
  useEffect(() => {
    if (wantedState !== undefined) setSearch({ ...ANY_CALL, state: wantedState });
  }, [wantedState]);
  const found = useCalls(ask, search);
  const open = session === undefined || call === undefined ? undefined : { role: first, session, call };
  useKeys({ j: () => focusRow(1), k: () => focusRow(-1) });
  return (
    <div class={open === undefined ? "split" : "split split-open"}>
      <section class="split-list" aria-label="Calls">
        <div class="page-head">
          <h1>Calls</h1>
          <p class="muted">
            {found.askedAtMs === 0 ? "" : `as of ${clockText(found.askedAtMs, Date.now())}`}
          </p>
        </div>
        <SearchForm key={JSON.stringify(search)} live={live} search={search} onSearch={setSearch} />
        <FoundTable
          found={found}
          current={open === undefined ? undefined : idOfCall(open)}
          onOpen={(line) => go("calls", line.role, line.session, line.call)}
        />
      </section>
      {open === undefined ? null : (
        <CallView key={idOfCall(open)} {...open} ask={ask} say={say} onLeave={() => go("calls")} />
      )}
    </div>
  );
}

interface FormProps extends Pick<PageProps, "live"> {
  readonly search: Search;
  readonly onSearch: (search: Search) => void;
}

function SearchForm({ live, search, onSearch }: FormProps) {
  const [written, setWritten] = useState(search);
  const write = (name: keyof Search) => (value: string) => setWritten({ ...written, [name]: value });
  const roles = live.status?.roles?.map(({ role }) => role) ?? [];
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        onSearch({ ...written });
      }}
    >
      <div class="filters">
        <Choice name="Role" value={written.role} values={roles} onWrite={write("role")} />
        <Text name="Session" value={written.session} onWrite={write("session")} />
        <Text name="Tool" value={written.tool} onWrite={write("tool")} />
        <Text name="Call id" value={written.call} onWrite={write("call")} />
        <Choice name="State" value={written.state} values={STATES} onWrite={write("state")} />
        <Choice
          name="Outcome"
          value={written.outcome}
          values={[...STATUSES, ...FAIL_CODES]}
          onWrite={write("outcome")}
        />
        <Time name="Since" value={written.since} onWrite={write("since")} />
        <Time name="Until" value={written.until} onWrite={write("until")} />
        <div class="buttons">
          <button type="submit" class="button button-primary">
            Search
          </button>
          <Button
            onClick={() => {
              setWritten(ANY_CALL);
              onSearch({ ...ANY_CALL });
            }}
          >
            Clear
          </Button>
        </div>
      </div>
    </form>
  );
}

interface InputProps {
  readonly name: string;
  readonly value: string;
  readonly onWrite: (value: string) => void;
}

function Text({ name, value, onWrite }: InputProps) {
  return (
    <Field name={name}>
      {(field: FieldGiven) => (
        <input
          {...field}
          value={value}
          autoComplete="off"
          spellcheck={false}
          onInput={(event) => onWrite(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Time({ name, value, onWrite }: InputProps) {
  return (
    <Field name={name}>
      {(field: FieldGiven) => (
        <input
          {...field}
          type="datetime-local"
          value={value}
          onInput={(event) => onWrite(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Choice({ name, value, values, onWrite }: InputProps & { values: readonly string[] }) {
  const all = value === "" || values.includes(value) ? values : [...values, value];
  return (
    <Field name={name}>
      {(field: FieldGiven) => (
        <select {...field} value={value} onChange={(event) => onWrite(event.currentTarget.value)}>
          <option value="">any</option>
          {all.map((one) => (
            <option key={one} value={one}>
              {visibleLine(one)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

const COLUMNS: readonly Column<CallLine>[] = [
  { head: "Tool", cell: ({ tool }) => <PeerText text={tool} chars={80} /> },
  { head: "Outcome", cell: (line) => <Outcome line={line} /> },
  { head: "Role", cell: ({ role }) => visibleLine(role) },
  { head: "Session", cell: ({ session }) => <PeerText text={session} chars={60} /> },
  { head: "Call", cell: ({ call }) => <PeerText text={call} /> },
  { head: "Took", cell: (line) => tookWords(line, Date.now()), kind: "number" },
  { head: "Asked", cell: ({ asked_at_ms: ms }) => <Moment ms={ms} />, kind: "tight" },
];

/** Where one is open beside the list. */
const BESIDE_COLUMNS: readonly Column<CallLine>[] = [
  {
    head: "Tool",
    cell: (line) => (
      <>
        <PeerText text={line.tool} chars={80} /> <Outcome line={line} />
      </>
    ),
  },
  {
    head: "Who",
    cell: ({ role, session }) => (
      <>
        {visibleLine(role)} <span class="muted">/</span> <PeerText text={session} chars={60} />
      </>
    ),
    kind: "wide",
  },
  { head: "Asked", cell: ({ asked_at_ms: ms }) => <Moment ms={ms} />, kind: "tight" },
];

interface FoundProps {
  readonly found: FoundCalls;
  readonly current: string | undefined;
  readonly onOpen: (line: CallLine) => void;
}

function FoundTable({ found, current, onOpen }: FoundProps) {
  const { rows, next, loading, fault, older, again } = found;
  if (loading && rows.length === 0) return <Loading what="calls" />;
  return (
    <>
      {fault === undefined ? null : <Fault told={fault} retry={rows.length === 0 ? again : older} />}
      {rows.length === 0 && fault === undefined ? (
        <Empty>
          {next === null ? "No call that is kept fits." : "None fits among those looked at so far."}
        </Empty>
      ) : null}
      {rows.length === 0 ? null : (
        <Table
          caption="Calls: those that go on first, then the newest"
          columns={current === undefined ? COLUMNS : BESIDE_COLUMNS}
          rows={rows}
          idOf={idOfCall}
          current={current}
          onOpen={onOpen}
        />
      )}
      <div class="more">
        {next === null ? null : (
          <Button busy={loading} onClick={older}>
            Older calls
          </Button>
        )}
        <Button kind="quiet" busy={loading} onClick={again}>
          Refresh
        </Button>
        <span>
          {counted(rows.length, "call")}
          {next === null ? ", no older ones are kept" : " so far"}
        </span>
      </div>
    </>
  );
}
