// The manual page, callgate(1), written from the same tree as the help: mdoc(7), for mandoc and groff.

import {
  type CommandNode,
  type Commands,
  type OptionNode,
  type Place,
  type Section,
  usageOf,
} from "./command_tree.ts";
import { callable, exitsOf, optionAbout, REMARK, wrapped } from "./help_text.ts";

/** The whole page. `atMs`: its date, in UTC. */
export function manualPage({ tree, sections, version }: Commands, atMs: number): string {
  const lines = [
    `.\\" Written by: callgate man (${version})`,
    `.Dd ${dateText(atMs)}`,
    ".Dt CALLGATE 1",
    ".Os",
    ".Sh NAME",
    ".Nm callgate",
    ".Nd the gate through which every tool call of an AI agent passes",
    ".Sh SYNOPSIS",
    ".Nm",
    ".Ar command",
    ".Op Ar options",
    ".Op Ar arguments",
    ".Sh DESCRIPTION",
    ...DESCRIPTION,
    ".Sh COMMANDS",
    ...commandLines(tree, sections),
    ".Sh OPTIONS TO REACH THE BROKER",
    "Commands that ask a broker something take these as well.",
    ...optionList(reachOptionsOf(tree)),
    ...AROUND,
    ".Sh EXIT STATUS",
    "A command whose statuses mean something else says so above.",
    ".Bl -tag -width Ds",
    ...exitsOf(tree).flatMap(({ status, means }) => [`.It ${status}`, text(means)]),
    ".El",
    ".Sh EXAMPLES",
    ...exampleLines(tree.examples),
    ".Sh SEE ALSO",
    ".Xr journalctl 1 ,",
    ".Xr jq 1 ,",
    ".Xr systemd.service 5 ,",
    ".Xr unix 7",
    "",
  ];
  return lines.join("\n");
}

const DESCRIPTION = [
  "An agent holds no capability of its own.",
  "It asks a broker, and the broker decides each call: by the grants of the",
  "role whose socket it came through, by what the agent has read before",
  "(its taint), and, where a grant says so, by asking a person.",
  "Everything that is decided and done is written down in an audit that",
  "nobody can cut unseen.",
  ".Pp",
  ".Nm",
  "is the broker",
  ".Pq Ic serve ,",
  "the command of whoever operates it, and a client for any role.",
  "What it prints is for people: text of other people's is shown escaped,",
  "and tables fit the terminal.",
  "With",
  ".Fl \\-json",
  "it prints one JSON object a line instead, for programs, and no colours.",
];

const AROUND = [
  ".Sh ENVIRONMENT",
  ".Bl -tag -width Ds",
  ".It Ev CALLGATE_SOCKET",
  "The socket, where neither",
  ".Fl \\-socket",
  "nor",
  ".Fl \\-fd",
  "names a way.",
  ".It Ev NO_COLOR",
  "If it is not empty: no colours.",
  ".It Ev FORCE_COLOR",
  "If it is not empty: colours, on a terminal or not;",
  ".Ql 0",
  "and",
  ".Ql false",
  "mean none.",
  "It decides before",
  ".Ev NO_COLOR .",
  ".It Ev TERM",
  "If it is",
  ".Ql dumb :",
  "no colours, and no line that shows how far long work is.",
  ".It Ev SOURCE_DATE_EPOCH",
  "The date of the page that",
  ".Ic man",
  "writes, in seconds since 1970.",
  ".El",
  ".Sh FILES",
  ".Bl -tag -width Ds",
  ".It Pa callgate.toml",
  "The config, which",
  ".Fl \\-config",
  "names: roles, tools and grants.",
  ".It Pa /run/callgate/ROLE.sock",
  "A role's socket, below",
  ".Ql daemon.sockets .",
  "Whoever connects there is that role.",
  ".It Pa /var/lib/callgate",
  "The state, unless",
  ".Ql daemon.state",
  "names another directory: calls, questions, taints, grants given at run",
  "time, the audit.",
  ".El",
];

function commandLines(tree: CommandNode, sections: readonly Section[]): readonly string[] {
  const all = callable(tree);
  const named = new Set(sections.flatMap(({ commands }) => commands));
  const first = ({ path }: CommandNode) => path.split(" ")[0] ?? "";
  const others = { heading: "Others", commands: all.map(first).filter((word) => !named.has(word)) };
  return [...sections, others].flatMap(({ heading, commands }) => {
    const nodes = all.filter((node) => commands.includes(first(node)));
    return nodes.length === 0 ? [] : [`.Ss ${text(heading)}`, ...nodes.flatMap(commandText)];
  });
}

/** One command: how it is called, what it does, its options, statuses and examples. */
function commandText(node: CommandNode): readonly string[] {
  const own = node.options.filter(({ ofReach, long }) => !ofReach && long !== "--help");
  const exits = node.path === "" ? [] : exitsOf(node);
  return [
    ".Bl -tag -width Ds",
    `.It ${usageMacros(node)}`,
    text(node.about),
    ...places(node.places),
    ...optionList(own),
    ...(node.help === undefined ? [] : node.help.split(/\n{2,}/).flatMap((part) => [".Pp", text(part)])),
    ...(exits.length === 0
      ? []
      : [
          ".Pp",
          "Exit status:",
          ".Bl -tag -width 4n -compact",
          ...exits.flatMap(({ status, means }) => [`.It ${status}`, text(means)]),
          ".El",
        ]),
    ...(node.examples.length === 0 ? [] : [".Pp", "For example:", ...exampleLines(node.examples)]),
    ".El",
  ];
}

function usageMacros(node: CommandNode): string {
  const words = usageOf(node).split(" ").slice(1).join(" ").replace(" [options]", "");
  const [, path = "", rest = ""] = /^([a-z][a-z ]*?)(?= [^a-z]|$)(.*)$/s.exec(words) ?? [];
  return `Ic ${argument(path)}${rest === "" ? "" : ` No ${argument(rest.trim())}`}`;
}

function places(all: readonly Place[]): readonly string[] {
  const told = all.filter(({ about }) => about !== undefined);
  if (told.length === 0) return [];
  return [
    ".Bl -tag -width Ds",
    ...told.flatMap(({ name, about = "" }) => [`.It Ar ${argument(name)}`, text(about)]),
    ".El",
  ];
}

function optionList(options: readonly OptionNode[]): readonly string[] {
  if (options.length === 0) return [];
  return [
    ".Bl -tag -width Ds",
    ...options.flatMap((option) => [`.It ${optionMacros(option)}`, text(optionAbout(option))]),
    ".El",
  ];
}

/** The word after `Fl` has one dash already. */
function optionMacros({ flags, takes }: OptionNode): string {
  const names = flags.replace(/ [<[].*$/s, "").split(", ");
  const shown = names.map((name) => `Fl ${argument(name.slice(1))}`).join(" , ");
  return takes === undefined ? shown : `${shown} Ar ${argument(takes)}`;
}

/** Of any command that reaches the broker: they all have the same. */
function reachOptionsOf(tree: CommandNode): readonly OptionNode[] {
  const all = callable(tree).map(({ options }) => options.filter(({ ofReach }) => ofReach));
  return all.reduce((most, one) => (one.length > most.length ? one : most), []);
}

function exampleLines(lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const shown = lines.flatMap((line) => {
    const [command = "", remark] = line.split(REMARK);
    return remark === undefined ? [command] : [remark, command];
  });
  return [".Bd -literal -offset indent", ...shown.map(literal), ".Ed"];
}

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

function dateText(ms: number): string {
  const date = new Date(ms);
  return `${MONTHS[date.getUTCMonth()] ?? ""} ${date.getUTCDate()}, ${date.getUTCFullYear()}`;
}

/** Text as it stands: each sentence on lines of its own, nothing in it a macro or an escape. */
function text(words: string): string {
  return words
    .replaceAll("\n", " ")
    .split(/(?<=[.?!]) (?=[A-Z])/)
    .flatMap((sentence) => wrapped(escapedText(sentence.trim()), SOURCE_COLUMNS))
    .map(guarded)
    .join("\n");
}

const SOURCE_COLUMNS = 76;

function literal(line: string): string {
  return guarded(escapedText(line).trimEnd());
}

/** Is no macro, whatever it begins with. */
function guarded(escaped: string): string {
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}

/** One argument of a macro, which quotes keep together. */
function argument(words: string): string {
  return `"${escapedText(words).replaceAll('"', '""')}"`;
}

/** Dashes, quotes and carets as they are typed; everything that is not ASCII by its number. */
function escapedText(words: string): string {
  return words
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll("~", "\\(ti")
    .replaceAll("^", "\\(ha")
    .replace(/[^\n -~]/gu, (character) => {
      const hex = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
      return `\\[u${hex}]`;
    });
}
