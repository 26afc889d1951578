// The rows of `callgate grants …`.

import { secondsOf } from "../base/time_text.ts";
import { type CommandRow, ROLE_OPTION, WANTS_LENGTH, wholeNumber } from "./command_row.ts";
import { CLASS_OPTION, TRUSTED_OPTION, UNTRUSTED_OPTION } from "./session_commands.ts";

export const GRANT_ROWS: readonly CommandRow[] = [
  {
    words: "grants list",
    about: "The grants of this role; an operator's: all.",
    tool: "callgate.grants.list",
    args: (_, flags) => ({ role: flags["role"] }),
    view: async () => (await import("./grant_views.ts")).grantList,
    options: [ROLE_OPTION],
    examples: ["callgate grants list --role agent"],
  },
  {
    words: "grants explain [tool] [arguments]",
    about:
      "What would be decided, and why, grant by grant; with --call what was decided, without a tool what the policy comes to. Runs nothing.",
    run: async () => (await import("./explain.ts")).explain,
    options: [
      { flags: "--role <role>", about: "whose call" },
      { flags: "--of <session>", about: "in which session" },
      { flags: "--call <call>", about: "a call that was asked: its decision is looked up in the record" },
      { ...CLASS_OPTION, flags: "--taint-class <class>", about: "as if the session's class were this" },
      { flags: "--untrusted", about: "as if the session had read something untrusted" },
    ],
    examples: [
      `callgate grants explain write_file '{"path":"/srv/docs/a.txt"}' --role agent --untrusted`,
      "callgate grants explain --call 1796040000000000 --of chat-17 --role agent  # why was it denied?",
      "callgate grants explain --role agent  # what reaches what",
    ],
  },
  {
    words: "grants add <role> <tools>",
    about: "Gives a role a grant while the broker runs, within what the config lets you give.",
    tool: "callgate.grants.add",
    args: ([role, tools = ""], flags) => ({
      role,
      tools: tools.split(","),
      id: flags["id"],
      sessions: typeof flags["of"] === "string" ? flags["of"].split(",") : undefined,
      effect: flags["effect"],
      when: flags["when"],
      taint_max: flags["class"],
      taint_untrusted: flags["untrusted"] ?? (flags["trusted"] === true ? false : undefined),
      above_taint: flags["aboveTaint"],
      expires_in_seconds: flags["expires"],
      max_calls: flags["maxCalls"],
      max_calls_per_seconds: flags["maxCallsPer"],
      reason: flags["reason"],
    }),
    view: async () => (await import("./grant_views.ts")).addedText,
    options: [
      {
        flags: "--effect <effect>",
        about: "what it does",
        choices: ["allow", "ask", "deny"],
        required: true,
      },
      { flags: "--reason <text>", about: "why, for everybody who is shown it", required: true },
      { ...CLASS_OPTION, about: "up to which taint it holds: the class" },
      { ...TRUSTED_OPTION, about: "and only for sessions that have read nothing untrusted" },
      { ...UNTRUSTED_OPTION, about: "and for sessions that have read something untrusted too" },
      { flags: "--above-taint <effect>", about: "above that taint", choices: ["deny", "ask"] },
      { flags: "--of <sessions>", about: "only these sessions, with commas between" },
      { flags: "--when <condition>", about: "only calls for which this CEL condition holds" },
      { flags: "--expires <time>", about: "ends after: 15m, 1h, 7d", parse: secondsOf, wants: WANTS_LENGTH },
      {
        flags: "--max-calls <number>",
        about: "for so many calls",
        parse: wholeNumber,
        wants: "It must be a whole number from 1.",
      },
      {
        flags: "--max-calls-per <time>",
        about: "so many within each such time; without it: ever",
        parse: secondsOf,
        wants: WANTS_LENGTH,
      },
      { flags: "--id <id>", about: "its id; without it: a new one" },
    ],
    examples: [
      "callgate grants add agent read_file,stat --effect allow --class internal --trusted --expires 1h --reason 'For the audit'",
    ],
  },
  {
    words: "grants revoke <grant>",
    about: "Takes back a grant that was added or remembered.",
    tool: "callgate.grants.revoke",
    args: ([grant], flags) => ({ grant, reason: flags["reason"] }),
    view: async () => (await import("./grant_views.ts")).revokedText,
    options: [{ flags: "--reason <text>", about: "why, for the audit" }],
    examples: ["callgate grants revoke GRANT --reason 'The audit is over'"],
  },
];
