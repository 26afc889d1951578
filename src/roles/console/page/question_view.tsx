// One question, whole, for the person who decides it: first what could make it a mistake, then where it goes
// and with what, then why it is asked and what stands around it. Destinations and the names of all arguments are
// never folded.

import { useMemo } from "preact/hooks";
import { visible } from "../../../base/display.ts";
import { membersOf, notAscii, quoted, shownJson, UNFOLDED } from "../../../base/json_text.ts";
import { labelsText, type WholeQuestion } from "../../../client/answers.ts";
import {
  Badge,
  CallLink,
  Facts,
  JsonText,
  Labels,
  Moment,
  Panel,
  PeerText,
  SessionLink,
  type Tone,
  userWords,
} from "./parts.tsx";

const EFFECT_TONES: Readonly<Record<string, Tone>> = {
  read: "plain",
  write: "info",
  send: "warn",
  spend: "bad",
  execute: "bad",
};

export function Effect({ effect }: { effect: string }) {
  return <Badge tone={EFFECT_TONES[effect] ?? "plain"}>{effect}</Badge>;
}

export function QuestionView({ question }: { question: WholeQuestion }) {
  return (
    <>
      <Doubt question={question} />
      <Standing question={question} />
      <WhereTo question={question} />
      <Arguments question={question} />
      <Reasons question={question} />
      <Taint question={question} />
      <StoreChanges question={question} />
      <Remembering question={question} />
      <Asker question={question} />
    </>
  );
}

function Doubt({ question: { doubt, role } }: { question: WholeQuestion }) {
  if (doubt === null) return null;
  return (
    <div class="notice notice-loud" role="note">
      <div>
        <h2>It may have run already</h2>
        <p>
          An equal call was made before, and its outcome is unknown
          {doubt.code === null ? "" : ` (${doubt.code})`}: <CallLink {...doubt} role={doubt.role ?? role} />
          {doubt.ended_at_ms === null ? null : (
            <>
              {", "}
              <Moment ms={doubt.ended_at_ms} how="both" />
            </>
          )}
          . Approving runs it, perhaps a second time.
        </p>
      </div>
    </div>
  );
}

/** Answering costs a person's attention, so what would come of a yes is said before. */
function Standing({ question: { now, state } }: { question: WholeQuestion }) {
  if (state !== "pending" || now === null || now === undefined || now.verdict === "holds") return null;
  return (
    <div class="notice notice-warn" role="note">
      <p>
        <strong>Approving would not run it now.</strong> {visible(now.why ?? now.verdict)}
      </p>
    </div>
  );
}

function WhereTo({ question }: { question: WholeQuestion }) {
  const { arguments: text, destinations } = question;
  const members = useMemo(() => membersOf(text), [text]);
  const names = Object.keys(destinations);
  return (
    <Panel title="Where it goes">
      {names.length === 0 ? (
        <p class="muted">The policy names no destinations of this tool: look through all of its arguments.</p>
      ) : (
        <dl class="destinations">
          {names.map((name) => (
            <Destination key={name} name={name} value={members.get(name)} />
          ))}
        </dl>
      )}
    </Panel>
  );
}

/** Unfolded, and with its characters named where one may look like another. */
function Destination({ name, value }: { name: string; value: string | undefined }) {
  const shown = value === undefined ? "(not given)" : shownJson(value, UNFOLDED).lines.join("\n");
  const odd = value === undefined ? undefined : notAscii(meant(value));
  return (
    <div>
      <dt class="peer">{keyText(name)}</dt>
      <dd>
        <pre class="peer peer-lines">{shown}</pre>
        {odd === undefined ? null : <p class="odd">Not plain letters: {odd}</p>}
      </dd>
    </div>
  );
}

/** What the text of a JSON value means, escapes undone. */
function meant(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

function keyText(name: string): string {
  return PLAIN_NAME.test(name) ? name : quoted(name);
}

function Arguments({ question: { arguments: text, destinations } }: { question: WholeQuestion }) {
  const keys = useMemo(() => {
    const names = [...membersOf(text).keys()];
    const first = Object.keys(destinations).filter((name) => names.includes(name));
    return [...new Set([...first, ...names])];
  }, [text, destinations]);
  return (
    <Panel title="Arguments">
      {text === "" ? (
        <p class="muted">The arguments are no longer kept.</p>
      ) : (
        <>
          <p class="keys">
            {keys.length === 0 ? "none" : null}
            {keys.map((key) => (
              <code key={key} class="peer">
                {keyText(key)}
              </code>
            ))}
          </p>
          <JsonText text={text} />
        </>
      )}
    </Panel>
  );
}

function Reasons({ question: { asks, grants, row, state } }: { question: WholeQuestion }) {
  return (
    <Panel title="Why it is asked">
      {asks.length === 0 ? (
        <p>
          {grants.length === 0 ? "No grant" : `Grant ${visible(grants.join(", "))}`} (row {visible(row)})
          {state === "pending" ? ". The policy asks nobody any more." : ""}
        </p>
      ) : (
        <ul class="plain-list">
          {asks.map(({ grant, reason, when }) => (
            <li key={grant}>
              <strong>{visible(grant)}</strong>
              {reason === null ? null : <>: {visible(reason)}</>}
              {when === null ? null : (
                <p>
                  <span class="muted">when </span>
                  <code>{visible(when)}</code>
                </p>
              )}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Taint({ question }: { question: WholeQuestion }) {
  const { taint, asked_taint: asked, raised_by: by } = question;
  const hasRisen = labelsText(taint) !== labelsText(asked);
  return (
    <Panel title="What the session has been given">
      <Facts
        rows={[
          [hasRisen ? "Taint now" : "Taint", <Labels key="now" labels={taint} />],
          ["When asked", hasRisen ? <Labels labels={asked} /> : undefined],
          ["Raised by", by === null ? "nothing has raised it" : <CallLink {...by} />],
        ]}
      />
    </Panel>
  );
}

function StoreChanges({ question: { store_changes: changes } }: { question: WholeQuestion }) {
  if (changes.length === 0) return null;
  return (
    <Panel title="Changed since it was asked">
      <p class="muted">Calls that have changed the same store since, or may have:</p>
      <ul class="plain-list">
        {changes.map((one) => (
          <li key={JSON.stringify([one.role, one.session, one.call])}>
            <code>{visible(one.tool)}</code>: <CallLink {...one} />, <Moment ms={one.at_ms} how="both" />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Remembering({ question: { remember, state } }: { question: WholeQuestion }) {
  if (state !== "pending") return null;
  if (!remember.allowed)
    return (
      <Panel title="Remembering">
        <p class="muted">Not possible: {visible(remember.why ?? "the policy forbids it")}.</p>
      </Panel>
    );
  return (
    <Panel title="What remembering would cover">
      <Facts
        rows={[
          ["Arguments", visible(remember.arguments.covers)],
          ["Tool", visible(remember.tool.covers)],
          [
            "Until",
            remember.expires_max_ms === null ? undefined : (
              <>
                at most <Moment ms={remember.expires_max_ms} how="both" />
              </>
            ),
          ],
          ["How often", remember.number_needed ? "a number of times must be given" : undefined],
        ]}
      />
    </Panel>
  );
}

function Asker({ question }: { question: WholeQuestion }) {
  const { role, uid, pid, session, call, asked_at_ms: askedAtMs, approval, digest, definition } = question;
  return (
    <Panel title="Who asks">
      <Facts
        rows={[
          ["Role", `${visible(role)}, ${userWords(uid)}, ${pid === null ? "process unknown" : `pid ${pid}`}`],
          ["Session", <SessionLink key="session" role={role} session={session} />],
          ["Call", <CallLink key="call" role={role} session={session} call={call} />],
          ["Asked", <Moment key="asked" ms={askedAtMs} how="both" />],
          ["Question", <PeerText key="question" text={approval} />],
          ["Digest", digest === "" ? undefined : <PeerText text={digest} />],
          ["Definition", definition === null ? undefined : <PeerText text={definition} />],
          ["Policy", <PeerText key="policy" text={question.policy} />],
        ]}
      />
    </Panel>
  );
}
