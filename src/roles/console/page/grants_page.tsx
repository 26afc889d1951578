// Grants: those of the config and those that came at run time, what each does in words, adding and revoking.

import { useState } from "preact/hooks";
import type { GrantLine } from "../../../client/answers.ts";
import { useAsked } from "./asked.ts";
import { GrantForm } from "./grant_form.tsx";
import { grantSentence, originOf, rememberedWords, termsOf } from "./grant_words.ts";
import { Choice, Search } from "./inputs.tsx";
import { OpenedHead } from "./opened_head.tsx";
import type { PageProps } from "./page.ts";
import {
  actorWords,
  Badge,
  Button,
  Confirm,
  Empty,
  Facts,
  Fault,
  Field,
  Loading,
  Moment,
  Panel,
  PeerText,
} from "./parts.tsx";
import { addressOf } from "./route.ts";
import { type Column, Table } from "./table.tsx";
import { VerdictBadge } from "./verdict_badge.tsx";
import { Words } from "./words.tsx";

interface Grants {
  readonly grants: readonly GrantLine[];
}

/** The word of the address for the form: an id never has it, since those that are added begin `runtime.` and the form's is no grant. */
const NEW = "+";

export function GrantsPage(props: PageProps) {
  const [id] = props.words;
  const asked = useAsked<Grants>(props.ask, "callgate.grants.list", id === NEW ? undefined : {});
  if (id === NEW) return <GrantForm {...props} />;
  if (id !== undefined) return <OneGrant key={id} {...props} id={id} asked={asked} />;
  return <GrantList {...props} asked={asked} />;
}

type Asked = ReturnType<typeof useAsked<Grants>>;

const ORIGINS = ["config", "added", "remembered"] as const;

function Ends({ grant }: { grant: GrantLine }) {
  if (grant.expired) return <Badge tone="warn">expired</Badge>;
  if (isSpent(grant)) return <Badge tone="warn">used up</Badge>;
  return grant.expires_at_ms === null ? <span class="muted">-</span> : <Moment ms={grant.expires_at_ms} />;
}

function isSpent({ max_calls: limit }: GrantLine): boolean {
  return (limit ?? null) !== null && limit !== undefined && limit !== null && limit.used >= limit.calls;
}

function taintText(grant: GrantLine): string {
  if (grant.taint_max === null) return "any";
  return `${grant.taint_max}, ${grant.taint_untrusted === true ? "untrusted" : "trusted"}`;
}

const COLUMNS: readonly Column<GrantLine>[] = [
  { head: "Grant", cell: ({ id }) => <PeerText text={id} chars={80} /> },
  { head: "Role", cell: ({ role }) => <PeerText text={role} chars={60} />, kind: "tight" },
  { head: "Effect", cell: ({ effect }) => <VerdictBadge verdict={effect} /> },
  { head: "Tools", cell: ({ tools }) => <PeerText text={tools.join(", ")} chars={160} /> },
  { head: "Up to taint", cell: taintText, kind: "tight" },
  { head: "Origin", cell: (grant) => originOf(grant) },
  { head: "Ends", cell: (grant) => <Ends grant={grant} />, kind: "tight" },
];

interface Wanted {
  readonly text: string;
  readonly role: string;
  readonly origin: string;
}

/** Rows drawn at once; more on demand, so that a thousand grants do not hold the page up. */
const ROWS = 200;

function GrantList({ go, asked: { told, loading, again } }: PageProps & { asked: Asked }) {
  const [wanted, setWanted] = useState<Wanted>({ text: "", role: "", origin: "" });
  const [count, setCount] = useState(ROWS);
  const all = told?.ok ? told.value.grants : [];
  const fitting = all.filter((grant) => fits(grant, wanted));
  const rows = fitting.slice(0, count);
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1}>Grants</h1>
        <div class="buttons">
          <Button onClick={again} busy={loading}>
            Refresh
          </Button>
          <Button kind="primary" onClick={() => go("grants", NEW)}>
            Add a grant
          </Button>
        </div>
      </header>
      <Filters
        wanted={wanted}
        onChange={setWanted}
        roles={[...new Set(all.map(({ role }) => role))].sort()}
      />
      <Fault told={told} retry={again} />
      {told === undefined && loading ? <Loading what="grants" /> : null}
      {told?.ok && rows.length === 0 ? (
        <Empty>
          {all.length === 0 ? "There are no grants: everything is denied." : "No grant fits the filter."}
        </Empty>
      ) : null}
      {rows.length === 0 ? null : (
        <Table
          caption="Grants"
          columns={COLUMNS}
          rows={rows}
          idOf={({ id }) => id}
          onOpen={({ id }) => go("grants", id)}
          rowClass={(grant) => (grant.expired || isSpent(grant) ? "dim" : "")}
        />
      )}
      {told?.ok ? (
        <div class="more">
          {fitting.length > rows.length ? (
            <Button onClick={() => setCount(count + ROWS)}>Show more</Button>
          ) : null}
          <span>
            {rows.length} of {all.length} grants.
          </span>
        </div>
      ) : null}
    </>
  );
}

function fits(grant: GrantLine, { text, role, origin }: Wanted): boolean {
  if (role !== "" && grant.role !== role) return false;
  if (origin !== "" && originOf(grant) !== origin) return false;
  const own = [grant.id, grant.role, grant.effect, grant.reason ?? "", ...grant.tools].map((one) =>
    one.toLowerCase(),
  );
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => own.some((one) => one.includes(word)));
}

interface FiltersProps {
  readonly wanted: Wanted;
  readonly onChange: (wanted: Wanted) => void;
  readonly roles: readonly string[];
}

function Filters({ wanted, onChange, roles }: FiltersProps) {
  return (
    <div class="filters">
      <Choice
        name="Role"
        value={wanted.role}
        onChange={(role) => onChange({ ...wanted, role })}
        none="All roles"
        options={roles}
      />
      <Choice
        name="Origin"
        value={wanted.origin}
        onChange={(origin) => onChange({ ...wanted, origin })}
        none="Any"
        options={ORIGINS}
      />
      <Search
        name="Filter"
        value={wanted.text}
        onChange={(text) => onChange({ ...wanted, text })}
        placeholder="Id, tool, effect or reason"
      />
    </div>
  );
}

interface OneProps extends PageProps {
  readonly id: string;
  readonly asked: Asked;
}

function OneGrant({ id, asked: { told, loading, again }, ...props }: OneProps) {
  const grant = told?.ok ? told.value.grants.find((one) => one.id === id) : undefined;
  return (
    <>
      <OpenedHead
        page="grants"
        back="All grants"
        title={
          <>
            <span class="muted">Grant</span> <PeerText text={id} chars={120} />
          </>
        }
      />
      <Fault told={told} retry={again} />
      {told === undefined && loading ? <Loading what="the grant" /> : null}
      {told?.ok && grant === undefined ? (
        <Empty>There is no such grant now. It may have been revoked, or have ended.</Empty>
      ) : null}
      {grant === undefined ? null : <WholeGrant {...props} grant={grant} onDone={again} />}
    </>
  );
}

function WholeGrant({ grant, ...props }: PageProps & { grant: GrantLine; onDone: () => void }) {
  const remembered = rememberedWords(grant);
  return (
    <Panel title="What it does" aside={<VerdictBadge verdict={grant.effect} />}>
      <p class="sentence">
        <Words text={remembered ?? grantSentence(termsOf(grant, Date.now()))} chars={6000} />
      </p>
      <GrantFacts grant={grant} />
      <div class="acts">
        {grant.runtime === true ? (
          <Revoke {...props} grant={grant} />
        ) : (
          <p class="hint">It stands in the config, which alone holds it: change the file there and reload.</p>
        )}
      </div>
    </Panel>
  );
}

function GrantFacts({ grant }: { grant: GrantLine }) {
  const { max_calls: limit, approval = null } = grant;
  const added = grant.added_at_ms ?? null;
  return (
    <Facts
      rows={[
        ["Role", <PeerText text={grant.role} />],
        ["Tools", <PeerText text={grant.tools.join(", ")} />],
        ["Sessions", <PeerText text={grant.sessions.includes("*") ? "all" : grant.sessions.join(", ")} />],
        ["Condition", grant.when === null ? undefined : <PeerText text={grant.when} lines />],
        ["Up to taint", taintText(grant)],
        ["Above that", grant.above_taint === null ? undefined : aboveText(grant.above_taint)],
        ["Ends", grant.expires_at_ms === null ? "no" : <Moment ms={grant.expires_at_ms} how="both" />],
        ["Uses", usesText(limit)],
        ["Reason", grant.reason === null ? undefined : <PeerText text={grant.reason} lines />],
        ["Origin", originOf(grant)],
        ["By", grant.runtime === true ? actorWords(grant.by) : undefined],
        ["Since", added === null ? undefined : <Moment ms={added} how="both" />],
        [
          "Approval",
          approval === null ? undefined : (
            <a href={addressOf("questions", approval)}>
              <PeerText text={approval} />
            </a>
          ),
        ],
      ]}
    />
  );
}

function aboveText(above: string): string {
  return above === "ask" ? "a person is asked" : "it does not hold";
}

function usesText(limit: GrantLine["max_calls"]): string | undefined {
  if (limit === null || limit === undefined) return undefined;
  return `${limit.used} of ${limit.calls}${limit.per_ms === null ? "" : ` in every ${limit.per_ms / 1000} s`}`;
}

interface RevokeProps extends Pick<PageProps, "ask" | "say" | "go"> {
  readonly grant: GrantLine;
  readonly onDone: () => void;
}

function Revoke({ ask, say, go, grant, onDone }: RevokeProps) {
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    const why = reason.trim() === "" ? {} : { reason: reason.trim() };
    const told = await ask("callgate.grants.revoke", { grant: grant.id, ...why });
    setBusy(false);
    if (!told.ok) return say(told.why, "bad");
    say(`Grant ${grant.id} is revoked.`, "good");
    onDone();
    go("grants");
  };
  return (
    <div class="form">
      <Field name="Reason for revoking (optional)" hint="It is kept in the audit.">
        {(given) => (
          <input
            {...given}
            value={reason}
            maxLength={1024}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
      <Confirm
        label="Revoke…"
        question={revokeQuestion(grant)}
        verb="Revoke this grant"
        busy={busy}
        onConfirm={() => void revoke()}
      />
    </div>
  );
}

function revokeQuestion({ effect }: GrantLine): string {
  if (effect === "allow") return "From now on it lets nothing through. What runs already goes on.";
  return effect === "ask"
    ? "From now on nobody is asked because of it: calls are decided by the other grants, which may allow them."
    : "From now on it denies nothing: calls are decided by the other grants, which may allow them.";
}
