// What `callgate init --from-mcp` suggests for the tools of an MCP server, as comments of the config: grants by the hints
// that the server gives of its own tools. Invariant: nothing of it is in force, whatever a server says; its words stand in
// comments of one line each, and are taken for nothing; with the first # of each line taken away a block is valid TOML.

import { visibleLine } from "../base/display.ts";
import type { Seen, SeenTool, ToolHints } from "./mcp_look.ts";

/** Of the servers that were looked at, by role; a text says why there is nothing to suggest. */
export type Looks = ReadonlyMap<string, Seen | string>;

const WORDS_CHARS_MAX = 90;

/** `callers`: the roles that could use them. */
export function suggestedGrants(role: string, callers: readonly string[], look: Seen | string): string {
  if (typeof look === "string") return nothingSeen(role, callers, look);
  const { tools, leftOut } = look;
  const groups = GROUPS.map((group) => ({ ...group, tools: tools.filter(({ hints }) => group.has(hints)) }));
  return [
    HEAD(role),
    ...(tools.length === 0 ? ["# It said that it has none.\n"] : []),
    ...leftOut.map((line) => `# ${visibleLine(line, 300)}\n`),
    ...callers.flatMap((caller) =>
      groups.filter((group) => group.tools.length > 0).map((group) => block(role, caller, group)),
    ),
    ...[...tools.filter(({ hints }) => reads(hints)), ...tools]
      .slice(0, 1)
      .map(({ name }) => large(role, name)),
  ].join("\n");
}

const HEAD = (
  role: string,
) => `# What the server of ${role} said of its tools when init looked at it. These are its own words: a server that
# means harm says what it likes. So nothing of this is in force. Take the # away where you agree, once
# you have accepted the tools (callgate tools diff "${role}.*", then accept).
`;

interface Group {
  readonly id: string;
  readonly has: (hints: ToolHints) => boolean;
  readonly about: string;
  readonly grant: string;
}

const reads = ({ readOnly }: ToolHints) => readOnly === true;
const isInside = ({ openWorld }: ToolHints) => openWorld === false;

const APPROVAL = 'approval_ttl = "15m"';
/** The protocol's own reading of a hint that is missing is the worse one, and so it is here. */
const GROUPS: readonly Group[] = [
  {
    id: "reads",
    has: (hints) => reads(hints) && isInside(hints),
    about:
      "It says of these that they only read, and reach nothing outside: allowed, whatever was read before.",
    grant: `effect = "allow"\ntaint_max = "internal"\ntaint_untrusted = true\nabove_taint = "ask"\n${APPROVAL}`,
  },
  {
    id: "fetches",
    has: (hints) => reads(hints) && !isInside(hints),
    about:
      "It says of these that they only read, but they may reach outside, and could carry something there: allowed until\n## the session has read something untrusted, and then a person is asked.",
    grant: `effect = "allow"\ntaint_max = "public"\ntaint_untrusted = false\nabove_taint = "ask"\n${APPROVAL}`,
  },
  {
    id: "asks",
    has: (hints) => !reads(hints),
    about: "It does not say of these that they only read: a person is asked each time.",
    grant: `effect = "ask"\ntaint_max = "restricted"\ntaint_untrusted = true\n${APPROVAL}`,
  },
];

/** From its head to its last line there is no empty one: an editor takes it as one paragraph. */
function block(
  role: string,
  caller: string,
  { id, about, grant, tools }: Omit<Group, "has"> & { readonly tools: readonly SeenTool[] },
): string {
  const listed = tools.flatMap((tool) => [`##   ${remark(tool)}`, `#  "${tool.name}",`]);
  return `## ${about}
#[[grants]]
#id = "${caller}-${id}-${role}"
#role = "${caller}"
#tools = [
${listed.join("\n")}
#]
${commented(grant)}
`;
}

function remark({ words, hints }: SeenTool): string {
  const said = [
    hints.readOnly === true ? "only reads" : undefined,
    hints.destructive === true && hints.readOnly !== true ? "destroys" : undefined,
    hints.openWorld === true ? "reaches outside" : undefined,
  ].filter((one) => one !== undefined);
  const shown = words === "" ? "(no words)" : `"${visibleLine(words, WORDS_CHARS_MAX)}"`;
  return `${shown}${said.length === 0 ? "" : ` (${said.join(", ")})`}`;
}

function commented(text: string): string {
  return text.replace(/^/gm, "#");
}

function large(role: string, name: string): string {
  return `## A result over 256 KiB is cut, and a cut one reaches a client as the beginning of its JSON. For a tool with larger
## ones, once it is accepted (a tool that is named here first is in service before anybody has looked):
#[tools."${name}"]
#role = "${role}"
## "read" where you know that it does no more.
#effect = "execute"
#max_result_bytes = 4194304
#on_oversize = "fail"
`;
}

function nothingSeen(role: string, callers: readonly string[], why: string): string {
  const grant = commented(GROUPS.at(-1)?.grant ?? "");
  const blocks = callers.map(
    (caller) => `## Until you know more, a person may be asked about each call.
#[[grants]]
#id = "${caller}-asks-${role}"
#role = "${caller}"
#tools = ["${role}.*"]
${grant}
`,
  );
  return [
    `# The tools of ${role} are not known: ${visibleLine(why, 200)}.
# What it announces, callgate tools list shows.
`,
    ...blocks,
  ].join("\n");
}
