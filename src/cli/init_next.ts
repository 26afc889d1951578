// What to do after `callgate init`: the commands in their order, as they can be typed.

import { join, relative } from "node:path";
import { visible } from "../base/display.ts";
import { shellWord } from "../base/shell_word.ts";
import { type Choice, OPERATOR_ROLE, type Program, USER_PREFIX } from "./init_choice.ts";
import { OPERATORS_GROUP } from "./init_config.ts";
import { filesPrefix } from "./init_files.ts";
import { CLIENT_ENTRY, clientEntry, operatorSocket, START_SCRIPT, serverFile } from "./init_mcp_files.ts";
import { rootOption } from "./systemd_drop_ins.ts";

export interface NextHost {
  /** `callgate install` comes next by itself. */
  readonly installs: boolean;
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

/** What `callgate install` is asked for the same roles. */
export interface InstallFlags {
  readonly config: string;
  readonly files: readonly string[];
  readonly server: readonly string[];
}

export function installFlags({ directory, providers }: Choice): InstallFlags {
  return {
    config: join(directory, "callgate.toml"),
    files: providers.flatMap(({ role, roots }) => roots.map((root) => `${role}=${rootOption(root)}`)),
    server: providers.flatMap(({ role, server }) =>
      server === undefined ? [] : [`${role}=${join(directory, serverFile(role))}`],
    ),
  };
}

function service(choice: Choice, { installs }: NextHost): readonly Step[] {
  const { config, files, server } = installFlags(choice);
  const options = [
    ...files.map((one) => ` --files ${word(one)}`),
    ...server.map((one) => ` --server ${word(one)}`),
  ].join("");
  const programs = choice.providers.filter(
    ({ roots, server: own }) => roots.length === 0 && own === undefined,
  );
  const own = [
    ...choice.callers.filter((role) => !choice.clients.has(role)),
    ...programs.map(({ role }) => role),
  ];
  return [
    ...(installs
      ? []
      : [
          [
            "As root: units, sockets and users for these roles. It says what to do with them (--now does it):",
            `callgate install --config ${word(config)}${options}`,
          ] satisfies Step,
        ]),
    [
      "Read the config, change what has to be otherwise, and once its users are there have it checked:",
      `callgate check --config ${word(config)}`,
    ],
    ...(own.length === 0
      ? []
      : [
          [
            "A program of your own runs as such a unit, which starts callgate-ROLE in /usr/local/bin:",
            ...own.map((role) => `systemctl enable --now callgate-program@${role}`),
          ] satisfies Step,
        ]),
    [
      `Once it runs, as an operator (who was put into the group ${OPERATORS_GROUP} logs in again first):`,
      `callgate status --socket /run/callgate/${OPERATOR_ROLE}.sock`,
    ],
    [
      "And for the page in the operator's browser, as a service of that user:",
      "systemctl --user enable --now callgate-console",
      "journalctl --user -u callgate-console -o cat  # has the link that logs in",
    ],
  ];
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
