// What was decided about a call, from the record: by which row and grant, at what taint. Where the record has
// only counts of denials, it says that and names no decision as the call's own.

import { visible } from "../../../base/display.ts";
import { counted as countedWords } from "../../../base/json_text.ts";
import type { CountedDenials, Why } from "../../../client/answers.ts";
import type { AskedState } from "./asked.ts";
import { Facts, Labels, Loading, Moment, Panel, PeerText } from "./parts.tsx";
import { addressOf } from "./route.ts";

const ROW_WORDS: Readonly<Record<string, string>> = {
  deny: "a grant denies it",
  allow: "a grant allows it",
  ask: "a grant asks a person",
  allow_above_taint_ask: "the taint is above what a grant allows it at, and that grant then asks a person",
  ask_expired: "the grant that asks has expired",
  ask_above_taint: "the session's taint is above what the grant asks at",
  allow_above_taint: "the session's taint is above what the grant allows",
  allow_expired: "the grant that allows it has expired",
  nothing: "no grant fits",
};

const CONDITION_WORDS: Readonly<Record<string, string>> = {
  match: "it held",
  error: "it could not be judged, so it does not allow",
};

export function DecisionPanel({ why }: { why: AskedState<Why> }) {
  if (why.told === undefined)
    return (
      <Panel title="What was decided">
        <Loading what="the decision" />
      </Panel>
    );
  if (!why.told.ok)
    return (
      <Panel title="What was decided">
        <p class="muted">{visible(why.told.why)}</p>
      </Panel>
    );
  const decision = why.told.value;
  const isCounted = (decision.counted ?? null) !== null;
  const title = isCounted
    ? "What may have been decided"
    : decision.denied === null
      ? "What was decided"
      : "Why it was denied";
  return (
    <Panel title={title}>
      {isCounted ? <Counted denials={decision.counted ?? []} /> : null}
      {decision.row === "counted" ? null : <Decided decision={decision} />}
    </Panel>
  );
}

function Decided({ decision }: { decision: Why }) {
  const { denied, row, grant, reason, condition, taint, at_ms: atMs, verdict, approval, grants } = decision;
  return (
    <Facts
      rows={[
        ["Decision", denied === null ? visible(verdict ?? "allow") : `denied: ${visible(denied)}`],
        ["Because", `${ROW_WORDS[row] ?? "of its row"} (${visible(row)})`],
        ["Grant", grant === null ? "none" : <PeerText text={grant} />],
        ["Its reason", reason === null ? undefined : <PeerText text={reason} />],
        ["Its condition", CONDITION_WORDS[condition ?? ""]],
        [
          "Asking",
          grants === undefined || grants.length === 0 ? undefined : <PeerText text={grants.join(", ")} />,
        ],
        [
          "Question",
          approval === null || approval === undefined ? undefined : (
            <a href={addressOf("questions", approval)}>
              <PeerText text={approval} />
            </a>
          ),
        ],
        ["Taint then", <Labels key="taint" labels={taint} />],
        ["Decided", atMs === null || atMs === undefined ? undefined : <Moment ms={atMs} how="both" />],
      ]}
    />
  );
}

function Counted({ denials }: { denials: readonly CountedDenials[] }) {
  return (
    <>
      <p>
        No record names this call. Denials that repeated themselves within a minute were counted, and it may
        be one of these:
      </p>
      <ul class="plain-list counted">
        {denials.map((one) => (
          <li key={`${one.session} ${one.first_call} ${one.row}`}>
            <PeerText text={one.tool} />: {visible(one.denied ?? one.verdict)} ({visible(one.row)}
            {one.grant === null ? "" : `, grant ${visible(one.grant)}`}), {countedWords(one.count, "time")}{" "}
            after call <PeerText text={one.first_call} />, until <Moment ms={one.at_ms} how="both" />
          </li>
        ))}
      </ul>
    </>
  );
}
