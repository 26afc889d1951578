// The audit: whether it is whole, and its latest records in words, newest first, with filters.

import { useState } from "preact/hooks";
import { type AuditWish, useExported } from "./audit_pages.ts";
import { type AuditEntry, type AuditRecord, recordWords } from "./audit_records.ts";
import { AuditVerify } from "./audit_verify.tsx";
import { Choice, Text, Time } from "./inputs.tsx";
import type { PageProps } from "./page.ts";
import {
  Button,
  Dialog,
  Empty,
  Fault,
  JsonText,
  Loading,
  Moment,
  Panel,
  PeerText,
  SessionLink,
} from "./parts.tsx";
import { addressOf } from "./route.ts";
import { endWords, Said } from "./session_timeline.tsx";
import { type Column, Table } from "./table.tsx";

export function AuditPage(props: PageProps) {
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1}>Audit</h1>
      </header>
      <AuditVerify ask={props.ask} />
      <Records {...props} />
    </>
  );
}

/** As typed; times as the browser's input gives them, local. */
interface Wanted {
  readonly role: string;
  readonly session: string;
  readonly tool: string;
  readonly decision: string;
  readonly since: string;
  readonly until: string;
}

const ALL: Wanted = { role: "", session: "", tool: "", decision: "", since: "", until: "" };

function wishOf(wanted: Wanted): AuditWish {
  const { role, session, tool, decision, since, until } = wanted;
  return {
    role: filled(role),
    session: filled(session),
    tool: filled(tool),
    decision: filled(decision),
    since_ms: msOf(since),
    until_ms: msOf(until),
  };
}

function filled(text: string): string | undefined {
  return text.trim() === "" ? undefined : text.trim();
}

function msOf(local: string): number | undefined {
  const ms = local === "" ? Number.NaN : new Date(local).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}

function Records({ ask, live }: PageProps) {
  const [wanted, setWanted] = useState(ALL);
  const [asked, setAsked] = useState(ALL);
  const [opened, setOpened] = useState<AuditEntry>();
  const exported = useExported(ask, wishOf(asked));
  const { entries, loading, fault, next, older, again } = exported;
  const change = (changes: Partial<Wanted>) => setWanted({ ...wanted, ...changes });
  const roles = (live.status?.roles ?? []).map(({ role }) => role);
  return (
    <Panel
      title="Records"
      aside={
        <Button onClick={again} busy={loading}>
          Newest again
        </Button>
      }
    >
      <form
        class="filters"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(wanted);
        }}
      >
        <Choice
          name="Role"
          value={wanted.role}
          onChange={(role) => change({ role })}
          none="Any"
          options={roles}
        />
        <Text name="Session" value={wanted.session} onChange={(session) => change({ session })} />
        <Text name="Tool" value={wanted.tool} onChange={(tool) => change({ tool })} />
        <Choice
          name="Decision"
          value={wanted.decision}
          onChange={(decision) => change({ decision })}
          none="Any record"
          options={["allow", "ask", "deny"]}
        />
        <Time name="Since" value={wanted.since} onChange={(since) => change({ since })} />
        <Time name="Until" value={wanted.until} onChange={(until) => change({ until })} />
        <div class="buttons">
          <button type="submit" class="button button-primary">
            Search
          </button>
          <Button
            onClick={() => {
              setWanted(ALL);
              setAsked(ALL);
            }}
          >
            Clear
          </Button>
        </div>
      </form>
      {entries.length === 0 && loading ? <Loading what="records" /> : null}
      {entries.length === 0 && !loading && fault === undefined ? <Empty>No record fits.</Empty> : null}
      {entries.length === 0 ? null : (
        <Table
          caption="Audit records, newest first"
          columns={COLUMNS}
          rows={entries}
          idOf={idOf}
          onOpen={setOpened}
        />
      )}
      <Fault told={fault} retry={entries.length === 0 ? again : older} />
      <div class="more">
        {typeof next === "string" ? (
          <Button onClick={older} busy={loading}>
            Older
          </Button>
        ) : null}
        <span role="status">{endWords(loading, next, entries.length)}</span>
      </div>
      {opened === undefined ? null : <WholeRecord entry={opened} onClose={() => setOpened(undefined)} />}
    </Panel>
  );
}

function idOf({ record, line }: AuditEntry): string {
  return record?.seq ?? line;
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: "Record", cell: ({ record }) => record?.seq ?? "?", kind: "tight" },
  {
    head: "Time",
    cell: ({ record }) => (record === undefined ? "?" : <Moment ms={record.at_ms} how="clock" />),
    kind: "tight",
  },
  {
    head: "What",
    cell: ({ record }) =>
      record === undefined ? (
        "A record that can't be read: verify the audit."
      ) : (
        <Said {...recordWords(record)} />
      ),
  },
  { head: "Tool", cell: ({ record }) => <Name text={record?.tool} />, kind: "tight" },
  { head: "Role", cell: ({ record }) => <Name text={record?.role} />, kind: "tight" },
  { head: "Session", cell: ({ record }) => (record === undefined ? null : <SessionName record={record} />) },
  {
    head: "Call",
    cell: ({ record }) => (record === undefined ? null : <CallId record={record} />),
    kind: "tight",
  },
];

function Name({ text }: { text: string | undefined }) {
  return text === undefined ? null : <PeerText text={text} chars={48} />;
}

function SessionName({ record: { role, session } }: { record: AuditRecord }) {
  if (role === undefined || session === undefined) return <Name text={session} />;
  return <SessionLink role={role} session={session} />;
}

function CallId({ record: { role, session, call } }: { record: AuditRecord }) {
  if (role === undefined || session === undefined || call === undefined) return <Name text={call} />;
  return (
    <a href={addressOf("calls", role, session, call)}>
      <Name text={call} />
    </a>
  );
}

/** All of it, as it stands in the chain. */
function WholeRecord({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  const text = entry.record === undefined ? JSON.stringify(entry.line) : JSON.stringify(entry.record);
  return (
    <Dialog title={`Record ${entry.record?.seq ?? "?"}`} onClose={onClose}>
      <JsonText text={text} full />
      <p class="hint">
        Hash <code class="digest">{entry.hash}</code>
      </p>
    </Dialog>
  );
}
