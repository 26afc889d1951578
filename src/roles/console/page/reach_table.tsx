// What each role reaches, as a table: a row for each of its tools, eight taints beside, equal neighbours as one
// cell. Words and colours say the same. A row opens to the grants that it comes from.

import { useState } from "preact/hooks";
import { counted } from "../../../base/json_text.ts";
import { DATA_CLASSES } from "../../../base/labels.ts";
import { labelsText } from "../../../client/answers.ts";
import type { PolicyReach, ToolReach } from "../../../client/load_answers.ts";
import { Choice, Search } from "./inputs.tsx";
import { Button, Empty, PeerText } from "./parts.tsx";
import { type Span, spansOf } from "./reach.ts";
import { Scroller } from "./scroller.tsx";
import { VerdictBadge } from "./verdict_badge.tsx";
import { Words } from "./words.tsx";

/** Rows drawn at once. */
const ROWS = 150;

interface Row {
  readonly role: string;
  readonly tool: ToolReach;
}

export function ReachTable({ reach }: { reach: PolicyReach }) {
  const [role, setRole] = useState("");
  const [text, setText] = useState("");
  const [own, setOwn] = useState(false);
  const [count, setCount] = useState(ROWS);
  const all = reach.roles.flatMap((one): Row[] => one.tools.map((tool) => ({ role: one.role, tool })));
  const fitting = all.filter((row) => fits(row, role, text, own));
  const rows = fitting.slice(0, count);
  return (
    <>
      <div class="filters">
        <Choice
          name="Role"
          value={role}
          onChange={setRole}
          none="All roles"
          options={reach.roles.map((one) => one.role)}
        />
        <Search name="Tool" value={text} onChange={setText} placeholder="Name or effect" />
        <label class="check">
          <input type="checkbox" checked={own} onChange={(event) => setOwn(event.currentTarget.checked)} />
          With the broker's own tools
        </label>
      </div>
      {rows.length === 0 ? <Empty>No role reaches any such tool.</Empty> : <Matrix rows={rows} />}
      <div class="more">
        {fitting.length > rows.length ? (
          <Button onClick={() => setCount(count + ROWS)}>Show more</Button>
        ) : null}
        <span>
          {rows.length === fitting.length ? "" : `${rows.length} of `}
          {counted(fitting.length, "row")}.{reach.more ? " The broker left out what was too much." : ""}
        </span>
      </div>
    </>
  );
}

function fits({ role, tool }: Row, wantedRole: string, text: string, own: boolean): boolean {
  if (wantedRole !== "" && role !== wantedRole) return false;
  if (!own && tool.tool.startsWith("callgate.")) return false;
  const wanted = text.trim().toLowerCase();
  return wanted === "" || tool.tool.includes(wanted) || tool.effect === wanted;
}

function Matrix({ rows }: { rows: readonly Row[] }) {
  return (
    <Scroller label="What each role reaches">
      <table class="matrix">
        <caption class="unseen">What calls come to, by role, tool and the session's taint</caption>
        <thead>
          <tr>
            <th scope="col" rowSpan={2}>
              Role and tool
            </th>
            <th scope="col" rowSpan={2} class="effect">
              Effect
            </th>
            <th scope="colgroup" colSpan={4}>
              Nothing untrusted read
            </th>
            <th scope="colgroup" colSpan={4}>
              After something untrusted
            </th>
          </tr>
          <tr>
            {["trusted", "untrusted"].flatMap((trust) =>
              DATA_CLASSES.map((name) => (
                <th key={`${trust} ${name}`} scope="col">
                  {name}
                </th>
              )),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <ReachRow key={`${row.role} ${row.tool.tool}`} {...row} />
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

function ReachRow({ role, tool }: Row) {
  const [opened, setOpened] = useState(false);
  const clean = spansOf(tool, false);
  const tainted = spansOf(tool, true);
  return (
    <>
      <tr>
        <th scope="row">
          <button type="button" class="row-toggle" aria-expanded={opened} onClick={() => setOpened(!opened)}>
            <span>
              <PeerText text={role} chars={60} /> <span aria-hidden="true">→</span>{" "}
              <PeerText text={tool.tool} chars={80} />
            </span>
          </button>
        </th>
        <td class="effect">{tool.effect}</td>
        {[...clean, ...tainted].map((span) => (
          <td
            key={labelsText(first(span))}
            colSpan={span.taints.length}
            class={`reach reach-${span.verdict}`}
          >
            {span.verdict}
          </td>
        ))}
      </tr>
      {opened ? (
        <tr class="row-more">
          <td colSpan={10}>
            <Why tool={tool} spans={[...clean, ...tainted]} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function first({ taints }: Span) {
  return taints[0] ?? { class: "", untrusted: false };
}

function Why({ tool, spans }: { tool: ToolReach; spans: readonly Span[] }) {
  return (
    <>
      <p>
        Its effect is {tool.effect}; <PeerText text={tool.provider} chars={60} /> serves it. Its results are
        at least {labelsText(tool.brings)}.
      </p>
      <ul class="plain-list">
        {spans.map((span) => (
          <li key={labelsText(first(span))}>
            <VerdictBadge verdict={span.verdict} /> <Words text={spanText(span)} chars={2000} />
          </li>
        ))}
      </ul>
    </>
  );
}

function spanText({ taints, by }: Span): string {
  const [from, to] = [taints[0], taints.at(-1)];
  const trust = from?.untrusted === true ? "after something untrusted" : "with nothing untrusted read";
  const classes = from?.class === to?.class ? from?.class : `${from?.class} to ${to?.class}`;
  const grants = by.length === 0 ? "no grant" : `by ${by.join(", ")}`;
  return `${classes}, ${trust}: ${grants}`;
}
