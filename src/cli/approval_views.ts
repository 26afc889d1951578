// How questions look: many of them as a table, one of them whole, for the person who decides. What the
// agent chose is escaped; destinations and the names of all arguments come first and are never folded.

import { visibleLine } from "../base/display.ts";
import {
  counted,
  FOLDED,
  type Folding,
  membersOf,
  notAscii,
  quoted,
  shownJson,
  UNFOLDED,
} from "../base/json_text.ts";
import { localTime, moment, span } from "../base/time_text.ts";
import {
  type Actor,
  callText,
  labelsText,
  type Question,
  type Questions,
  type WholeQuestion,
} from "../client/answers.ts";
import { type Look, type Paint, PLAIN } from "./paint.ts";
import { type Column, stated, textTable } from "./text_table.ts";
import { userText } from "./users.ts";

const SHORT_ID_CHARS = 8;
const ASKED: readonly Column[] = [
  { name: "APPROVAL", whole: true },
  { name: "TOOL" },
  { name: "ROLE" },
  { name: "SESSION" },
  { name: "USER", yields: 3 },
  { name: "PID", yields: 5 },
  { name: "AGE", yields: 4 },
  { name: "TIME LEFT", whole: true },
];
/** Among questions that were answered who it was matters more than how long the others wait. */
const TIMES_YIELD: readonly Column[] = ASKED.map((column) =>
  column.name === "TIME LEFT" ? { ...column, yields: 2 } : column,
);
const DECIDED: readonly Column[] = [
  { name: "STATE", whole: true },
  { name: "BY", yields: 1 },
];

/** `value` is the content of `callgate.approvals.list`. */
export function questionTable(value: unknown, nowMs: number, look: Look = PLAIN): string {
  const list = value as Questions;
  const { approvals } = list;
  if (approvals.length === 0) return "no questions wait for an answer\n";
  const pendingOnly = approvals.every(({ state }) => state === "pending");
  const short = shortIds(approvals.map(({ approval }) => approval));
  const userName = userNames();
  const rows = approvals.map((one) => [
    short(one.approval),
    one.tool,
    one.role,
    one.session,
    userName(one.uid),
    one.pid === null ? "?" : String(one.pid),
    span(nowMs - one.asked_at_ms),
    timeLeft(one, nowMs),
    ...(pendingOnly ? [] : [stated(one.state), actorText(one.decided_by)]),
    destinationsText(one.destinations),
  ]);
  const asked = pendingOnly ? ASKED : [...TIMES_YIELD, ...DECIDED];
  const columns = [...asked, { name: "DESTINATIONS" }];
  return `${textTable(columns, rows, look)}${moreQuestions(list)}`;
}

/** Where not all are shown: how many there are. */
function moreQuestions({ approvals, more, total }: Questions): string {
  if (more !== true) return "";
  const waiting = approvals.filter(({ state }) => state === "pending").length;
  const hint = "--limit NUMBER shows more; --role, --of and --tool narrow it";
  if (total === undefined || total <= waiting)
    return `${counted(approvals.length, "question")} shown, and there are more: ${hint}\n`;
  const shown = waiting.toLocaleString("en-US");
  return `${shown} of ${counted(total, "question")} that wait: ${hint}\n`;
}

/** Each user is looked up once, however many questions are theirs. */
function userNames(): (uid: number | null) => string {
  const known = new Map<number, string>();
  return (uid) => {
    if (uid === null) return "?";
    const name = known.get(uid) ?? userText(uid).replace(/ \(uid \d+\)$/, "");
    known.set(uid, name);
    return name;
  };
}

/** As few characters as tell these ids apart. */
function shortIds(ids: readonly string[]): (id: string) => string {
  let chars = SHORT_ID_CHARS;
  while (new Set(ids.map((id) => id.slice(0, chars))).size < new Set(ids).size) chars += 1;
  return (id) => id.slice(0, chars);
}

function timeLeft({ state, expires_at_ms }: Question, nowMs: number): string {
  if (state !== "pending") return "-";
  return expires_at_ms <= nowMs ? "none" : span(expires_at_ms - nowMs);
}

export function actorText(actor: Actor | string | null): string {
  if (actor === null) return "-";
  if (typeof actor === "string") return actor;
  return actor.uid === null ? actor.role : `${actor.role}, ${userText(actor.uid)}`;
}

export function destinationsText(destinations: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(destinations).map(([name, value]) => `${name}=${valueText(value)}`);
  return named.length === 0 ? "-" : named.join(" ");
}

function valueText(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "bigint" ? member.toString() : member,
  );
}

/** One question for the person who decides it. */
export function wholeQuestion(
  question: WholeQuestion,
  nowMs: number,
  full: boolean,
  { paint }: Look = PLAIN,
): string {
  const args = argumentLines(question, full ? UNFOLDED : FOLDED);
  const sections = [
    [paint("heading", headline(question, nowMs))],
    asker(question),
    ...doubt(question, nowMs).map((lines) => lines.map((line) => paint("bad", line))),
    ...standing(question).map((lines) => lines.map((line) => paint("loud", line))),
    whereTo(question, paint),
    args,
    reasons(question),
    taint(question).map((line) => paint(question.taint.untrusted ? "untrusted" : undefined, line)),
    ...storeChanges(question, nowMs),
    remembering(question, nowMs),
    ...(question.digest === "" ? [] : [[row("digest", question.digest)]]),
  ];
  return `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

const NAME_CHARS = 14;

function row(name: string, text: string): string {
  return `  ${name.padEnd(NAME_CHARS)}${text}`;
}

function headline(question: WholeQuestion, nowMs: number): string {
  const id = visibleLine(question.approval);
  if (question.state !== "pending") {
    const when = question.decided_at_ms === null ? "" : `, ${moment(question.decided_at_ms, nowMs)}`;
    const by = question.decided_by === null ? "" : ` by ${visibleLine(actorText(question.decided_by))}`;
    return `Question ${id}: ${visibleLine(question.state)}${by}${when}`;
  }
  const left = question.expires_at_ms - nowMs;
  const until = `until ${localTime(question.expires_at_ms)}`;
  return `Question ${id}: ${left > 0 ? `waits for an answer, ${span(left)} left, ${until}` : "its time is over"}`;
}

function asker(question: WholeQuestion): string[] {
  const { role, session, call, pid } = question;
  const process = pid === null ? "process unknown" : `pid ${pid}`;
  return [
    row("who asks", visibleLine(`role ${role}, ${userText(question.uid)}, ${process}`)),
    row("", visibleLine(`session ${session}, call ${call}, ${localTime(question.asked_at_ms)}`)),
    row("tool", visibleLine(`${question.tool} (effect: ${question.effect})`)),
  ];
}

function doubt({ doubt: call, role }: WholeQuestion, nowMs: number): string[][] {
  if (call === null) return [];
  const ended =
    call.ended_at_ms === null ? "" : ` (${call.code ?? "ended"} at ${moment(call.ended_at_ms, nowMs)})`;
  return [
    [
      row(
        "IT MAY HAVE",
        visibleLine(`An equal call was made before and its outcome is unknown${ended}:`, 400),
      ),
      row("RUN ALREADY", visibleLine(callText({ role, ...call }))),
      row("", "Approving runs it, perhaps a second time."),
    ],
  ];
}

/** Answering costs a person's attention, so what would come of a yes is said before. */
function standing({ now }: WholeQuestion): string[][] {
  if (now === null || now === undefined || now.verdict === "holds") return [];
  const why = now.why === null ? now.verdict : `${now.verdict}: ${now.why}`;
  return [[row("BUT NOW", visibleLine(`approving would not run it (${why})`, 1000))]];
}

function whereTo(question: WholeQuestion, paint: Paint): string[] {
  const members = membersOf(question.arguments);
  const names = Object.keys(question.destinations);
  const destinations = names.flatMap((name, i) => destination(i === 0, name, members.get(name), paint));
  const keys = [...names.filter((name) => members.has(name)), ...members.keys()];
  const all = [...new Set(keys)].map(keyText).join(", ");
  return [
    ...(destinations.length === 0 ? [row("destinations", "none declared for this tool")] : destinations),
    row("arguments", all === "" ? "none" : all),
  ];
}

/** Unfolded, and with its characters named where one may look like another. */
function destination(first: boolean, name: string, value: string | undefined, paint: Paint): string[] {
  const shown = value === undefined ? ["(not given)"] : shownJson(value, UNFOLDED).lines;
  const [line = "", ...more] = shown;
  const odd = value === undefined ? undefined : notAscii(JSON.stringify(safely(value)));
  return [
    row(first ? "destinations" : "", `${keyText(name)} = ${line}`),
    ...more.map((one) => row("", one)),
    ...(odd === undefined ? [] : [paint("bad", row("", `  ! not plain letters: ${odd}`))]),
  ];
}

function safely(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

function keyText(name: string): string {
  return PLAIN_NAME.test(name) ? name : quoted(name);
}

function argumentLines({ arguments: text }: WholeQuestion, folding: Folding): string[] {
  if (text === "") return ["    (the arguments are no longer kept)"];
  const { lines, folded } = shownJson(text, folding);
  return [
    ...lines.map((line) => `    ${line}`),
    ...(folded ? ["    (something is hidden: --full shows all of it)"] : []),
  ];
}

function reasons({ asks, grants, row: why }: WholeQuestion): string[] {
  const lines = asks.flatMap(({ grant, reason, when }, i) => [
    row(
      i === 0 ? "asked by" : "",
      visibleLine(`grant ${grant}${reason === null ? "" : `: ${reason}`}`, 2000),
    ),
    ...(when === null ? [] : [row("", visibleLine(`  when ${when}`, 2000))]),
  ]);
  return lines.length > 0 ? lines : [row("asked by", visibleLine(`grant ${grants.join(", ")} (row ${why})`))];
}

function taint(question: WholeQuestion): string[] {
  const { taint: now, asked_taint: then, raised_by: by } = question;
  const changed = labelsText(now) === labelsText(then) ? "" : ` (when asked: ${labelsText(then)})`;
  return [
    row("taint", visibleLine(`${labelsText(now)}${changed}`)),
    row("", by === null ? "nothing has raised it" : visibleLine(`raised by ${callText(by)}`)),
  ];
}

const CHANGES_SHOWN_MAX = 20;

function storeChanges({ store_changes: changes }: WholeQuestion, nowMs: number): string[][] {
  if (changes.length === 0) return [];
  const shown = changes
    .slice(0, CHANGES_SHOWN_MAX)
    .map((one) => row("", visibleLine(`${one.tool}: ${callText(one)}, ${moment(one.at_ms, nowMs)}`, 400)));
  const more = changes.length - shown.length;
  return [
    [
      row("CHANGED SINCE", "Calls that have changed the same store since, or may have:"),
      ...shown,
      ...(more > 0 ? [row("", `and ${counted(more, "more change")}`)] : []),
    ],
  ];
}

function remembering({ remember }: WholeQuestion, nowMs: number): string[] {
  if (!remember.allowed)
    return [
      row("remembering", visibleLine(`not possible: ${remember.why ?? "the policy forbids it"}`, 1000)),
    ];
  const until =
    remember.expires_max_ms === null
      ? ""
      : `, at most until ${localTime(remember.expires_max_ms)} (${span(remember.expires_max_ms - nowMs)})`;
  const needed = remember.number_needed ? "; a number of times is needed (--times)" : "";
  return [
    row("remembering", `would cover${until}${needed}`),
    row("", `--remember arguments: ${visibleLine(remember.arguments.covers, 1000)}`),
    row("", `--remember tool:      ${visibleLine(remember.tool.covers, 1000)}`),
  ];
}
