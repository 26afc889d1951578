// What to do after `callgate init`: the commands in their order, as they can be typed.

import { join, relative } from "node:path";
import { visible } from "../base/display.ts";
import { type Choice, OPERATOR_ROLE, type Program, USER_PREFIX } from "./init_choice.ts";
import { OPERATORS_GROUP } from "./init_config.ts";
import { filesPrefix } from "./init_files.ts";
import { CLIENT_ENTRY, clientEntry, operatorSocket, START_SCRIPT, shellWord } from "./init_mcp_files.ts";
import { rolesOf, rootOption } from "./init_units.ts";

export interface NextHost {
  readonly isUser: (name: string) => boolean;
  readonly workingDirectory: string;
  /** The client's file, as it was given. */
  readonly file: string | undefined;
  readonly program: Program;
  readonly ownProgram: Program;
}

export function nextSteps(choice: Choice, host: NextHost): string {
  const steps = choice.kind === "here" ? tryout(choice, host) : service(choice, host);
  return [...steps, ...gated(choice, host)]
    .map(([why, ...commands]) => `${why}\n${commands.map((line) => `  ${line}\n`).join("")}`)
    .join("");
}

type Step = readonly [why: string, ...commands: string[]];

function tryout(
  { directory, callers, providers, taken }: Choice,
  { workingDirectory }: NextHost,
): readonly Step[] {
  const at = (...names: string[]) => word(near(join(directory, ...names), workingDirectory));
  const [caller = "agent"] = callers;
  const served = providers.filter(({ roots }) => roots.length > 0);
  const others = providers.filter(({ roots, server }) => roots.length === 0 && server === undefined);
  return [
    [
      "To try it, each in a terminal of its own:",
      taken === undefined ? `callgate serve --config ${at("callgate.toml")}` : at(START_SCRIPT),
      ...served.map(
        (one) => `callgate role files --socket ${at("run", `${one.role}.sock`)}${filesFlags(one)}`,
      ),
      `callgate approvals watch --socket ${at("run", `${OPERATOR_ROLE}.sock`)}`,
    ],
    ...(others.length === 0 ? [] : [programs(others.map(({ role }) => at("run", `${role}.sock`)))]),
    ...served.slice(0, 1).map(({ role, roots: [root] }): Step => {
      const args = JSON.stringify({ path: root?.path });
      return [
        "And as the agent:",
        `callgate call ${filesPrefix(role)}list_dir ${word(args)} --socket ${at("run", `${caller}.sock`)}`,
      ];
    }),
  ];
}

/** From servers that wait to be looked at, to a client that has them. */
function gated(choice: Choice, { workingDirectory, file, program, ownProgram }: NextHost): readonly Step[] {
  const { kind, directory, callers, clients, providers, taken } = choice;
  if (taken === undefined || file === undefined) return [];
  const typed = (path: string) => shellWord(kind === "here" ? near(path, workingDirectory) : path);
  const socket = typed(operatorSocket(choice));
  const [role = "ROLE"] = providers.flatMap((one) => (one.server === undefined ? [] : [one.role]));
  const entry = JSON.stringify(clientEntry(choice, taken.form, kind === "here" ? ownProgram : program));
  const [caller = "agent"] = callers;
  const who =
    kind === "service" && !clients.has(caller)
      ? ` (this entry is for the user ${USER_PREFIX}${caller}: name whoever runs the client with --caller ${caller}=USER)`
      : "";
  return [
    [
      "Look at what each server says its tools are, and put them into service:",
      `callgate tools diff '${role}.*' --socket ${socket}`,
      `callgate tools accept '${role}.*' DIGEST --socket ${socket}  # the digest is the last line of diff`,
    ],
    [
      `Take the # away from the grants in ${typed(join(directory, "callgate.toml"))} that you agree with, and then:`,
      `callgate reload --socket ${socket}`,
    ],
    [
      `In ${shellWord(file)}, put the entry in ${typed(join(directory, CLIENT_ENTRY))} in the place of the servers that were taken over${who}:`,
      visible(entry),
    ],
  ];
}

function programs(sockets: readonly string[]): Step {
  return ["Providers of your own connect to (docs/wire.md, examples/python):", ...sockets];
}

function filesFlags({ role, roots }: Choice["providers"][number]): string {
  const prefix = filesPrefix(role);
  const flags = roots.map((root) => ` --root ${word(rootOption(root))}`).join("");
  return `${prefix === "" ? "" : ` --prefix ${prefix}`}${flags}`;
}

function service(choice: Choice, { isUser }: NextHost): readonly Step[] {
  const { directory, providers, operators, clients } = choice;
  const at = (path: string) => word(join(directory, path));
  const served = providers.filter(({ roots }) => roots.length > 0);
  const run = providers.filter(({ roots, server }) => roots.length > 0 || server !== undefined);
  const missing = [
    "callgate",
    ...rolesOf(choice)
      .filter((role) => !clients.has(role))
      .map((role) => `${USER_PREFIX}${role}`),
  ].filter((user) => !isUser(user));
  const people = [
    ...operators.map((user) => [user, OPERATORS_GROUP] as const),
    ...[...clients].map(([role, user]) => [user, `${USER_PREFIX}${role}`] as const),
  ];
  const strangers = people.filter(([user]) => !isUser(user));
  return [
    ...(missing.length === 0
      ? []
      : [
          [
            "Next, as root. Make the users (the file says how without systemd):",
            `systemd-sysusers ${at("sysusers.d/callgate.conf")}`,
          ] satisfies Step,
        ]),
    ...strangers.map(
      ([user, group]): Step => [
        `No user here is called ${user}. When there is one:`,
        `usermod --append --groups ${group} ${user}`,
      ],
    ),
    [
      "Make the directories, and let each provider at what it serves:",
      `systemd-tmpfiles --create ${at("tmpfiles.d/callgate.conf")}`,
      ...served.flatMap(access),
    ],
    [
      "Read the config, change what has to be otherwise, and have it checked:",
      `callgate check --config ${at("callgate.toml")}`,
    ],
    [
      "Install and start (the .example files are for programs of your own):",
      `cp ${at("sysusers.d")}/*.conf /etc/sysusers.d/; cp ${at("tmpfiles.d")}/*.conf /etc/tmpfiles.d/`,
      `cp ${at("systemd")}/*.service /etc/systemd/system/; systemctl daemon-reload`,
      `systemctl enable --now callgate${run.map(({ role }) => ` callgate-${role}`).join("")}`,
    ],
    [
      `Then, as an operator (who was put into the group ${OPERATORS_GROUP} logs in again first):`,
      `callgate status --socket /run/callgate/${OPERATOR_ROLE}.sock`,
    ],
    [
      "And for the page in the operator's browser, as a service of that user:",
      `mkdir -p ~/.config/systemd/user; cp ${at("systemd/user")}/callgate-console.service ~/.config/systemd/user/`,
      "systemctl --user daemon-reload; systemctl --user enable --now callgate-console",
      "journalctl --user -u callgate-console -o cat  # has the link that logs in",
    ],
  ];
}

/** Without it the provider starts and can read nothing; init changes no rights by itself. */
function access({ role, roots }: Choice["providers"][number]): readonly string[] {
  return roots.map(
    ({ path, writable }) => `setfacl -R -m u:${USER_PREFIX}${role}:${writable ? "rwX" : "rX"} ${word(path)}`,
  );
}

/** As one would type it from there. */
function near(path: string, from: string): string {
  const short = relative(from, path);
  return short === "" || short.startsWith("..") ? path : short;
}

/** A word for a shell. No path of a Choice has a quote in it. */
function word(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text}'`;
}
