// `callgate demo`: a broker, a files provider and an agent, as processes of their own in a temporary
// directory, and what gets through the gate between them. Leaves nothing behind.

import type { ChildProcess } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { labelsText, type WholeQuestion } from "../client/answers.ts";
import { type Caller, connect } from "../client/caller.ts";
import type { ToolResponse } from "../wire/message.ts";
import { destinationsText } from "./approval_views.ts";
import { furnish } from "./demo_config.ts";
import { Stage, StageFault, stop } from "./demo_stage.ts";
import { EXIT, type Terminal } from "./terminal.ts";

export async function demo(terminal: Terminal): Promise<number> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "callgate-demo-")));
  const children: ChildProcess[] = [];
  const interrupted = onInterrupt();
  try {
    return await Promise.race([play(new Stage(terminal, directory, children)), interrupted]);
  } catch (error) {
    if (!(error instanceof StageFault)) throw error;
    terminal.err(`callgate: ${error.message}\n`);
    return EXIT.connection;
  } finally {
    await Promise.all(children.map(stop));
    await rm(directory, { recursive: true, force: true });
  }
}

/** Ctrl-C must leave nothing behind either. */
function onInterrupt(): Promise<number> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.once(signal, () => resolve(EXIT.interrupted));
  });
}

async function play(stage: Stage): Promise<number> {
  const { directory } = stage;
  await furnish(directory);
  stage.say("An agent reads mail, files and the web, and some of what it reads carries instructions.");
  stage.say("So the agent holds no capability. It asks a broker, and the broker decides each call:\n");
  stage.say(
    "  agent ──socket──▶ callgate ──socket──▶ files provider ──▶ docs/ (trusted), inbox/ (untrusted)\n",
  );
  await stage.start(/"event":"daemon.ready"/, "serve", "--config", join(directory, "callgate.toml"));
  const roots = [
    "--root",
    `internal,trusted,rw:${directory}/docs`,
    "--root",
    `internal,untrusted:${directory}/inbox`,
    "--root",
    `internal,trusted,rw:${directory}/letters`,
  ];
  await stage.start(/^serving /, "role", "files", "--socket", join(directory, "run/files.sock"), ...roots);
  const as = (role: string) =>
    connect({ to: { path: join(directory, `run/${role}.sock`) }, session: "demo" });
  const [agent, person] = await Promise.all([as("agent"), as("person")]);
  try {
    await scenes(stage, agent);
    await questions(stage, agent, person);
  } finally {
    await Promise.all([agent.close(), person.close()]);
  }
  stage.say(
    "The policy was a page of TOML: `callgate check` reads one, docs/try.md walks through it by hand.",
  );
  return EXIT.ok;
}

async function scenes(stage: Stage, agent: Caller): Promise<void> {
  const { directory } = stage;
  const scene = async (
    title: string,
    tool: string,
    args: Readonly<Record<string, unknown>>,
    moral: string,
  ) => {
    stage.say(`── ${title}`);
    stage.say(`   agent asks   ${tool} ${JSON.stringify(args).replaceAll(directory, "…")}`);
    const call = agent.call(tool, args);
    stage.say(`   gate answers ${answer(await call.final, directory)}`);
    const why = await agent.call("callgate.calls.why", { call: call.call.toString() }).final;
    if (why.status === "result") stage.say(`   why          ${because(why.content)}`);
    stage.say(`   → ${moral}\n`);
  };
  await scene(
    "1. A granted read",
    "read_file",
    { path: `${directory}/docs/plan.txt` },
    "The answer carries labels: how secret it is, and whether somebody else could have written it.",
  );
  await scene(
    "2. A path outside the grant",
    "read_file",
    { path: "/etc/passwd" },
    "Grants look at arguments, with functions that know what a path is.",
  );
  await scene(
    "3. A tool nobody granted",
    "send_mail",
    { to: "someone@example.org" },
    "Default deny; a tool that does not exist gets the same answer.",
  );
  await scene(
    "4. A write, while the session is clean",
    "write_file",
    { path: `${directory}/docs/note.txt`, content: "Ship on Friday.\n" },
    "Nothing untrusted was read so far, so the agent may write.",
  );
  await scene(
    "5. The inbox is read",
    "read_file",
    { path: `${directory}/inbox/mail.txt` },
    "The mail tries to give orders. From now on this session is tainted, whatever the model makes of it.",
  );
  await scene(
    "6. The same write again, after the mail",
    "write_file",
    { path: `${directory}/docs/note2.txt`, content: "Ship on Monday.\n" },
    "The injected order can't be carried out: the grant holds only for a clean session.",
  );
  await scene(
    "7. A grant that was for last week",
    "list_dir",
    { path: `${directory}/docs` },
    "Grants end by themselves.",
  );
}

async function questions(stage: Stage, agent: Caller, person: Caller): Promise<void> {
  const { directory } = stage;
  const letter = { path: `${directory}/letters/to-bob.txt`, content: "Dear Bob, we ship on Friday.\n" };
  await question(
    stage,
    "8. A question to a person, who says yes",
    { agent, person, answer: "approve" },
    letter,
    "The stored call ran after the yes, with the very bytes that were shown, tainted session or not.",
  );
  await question(
    stage,
    "9. Another one, refused",
    { agent, person, answer: "refuse" },
    { ...letter, path: `${directory}/letters/to-mallory.txt` },
    "Refused is not expired and not denied; the same question again is refused without asking.",
  );
}

interface Asked {
  readonly agent: Caller;
  readonly person: Caller;
  readonly answer: "approve" | "refuse";
}

async function question(
  stage: Stage,
  title: string,
  { agent, person, answer: verb }: Asked,
  args: Readonly<Record<string, unknown>>,
  moral: string,
): Promise<void> {
  stage.say(`── ${title}`);
  stage.say(`   agent asks   write_file ${JSON.stringify(args).replaceAll(stage.directory, "…")}`);
  const call = agent.call("write_file", args);
  for await (const message of call) {
    if (message.status !== "pending_approval") break;
    const { approval } = message;
    stage.say("   gate says    pending_approval, and asks a person");
    const shown = await person.call("callgate.approvals.show", { approval }).final;
    if (shown.status !== "result") throw new StageFault(`the person was not shown the question`);
    const seen = JSON.parse(shown.content) as WholeQuestion;
    stage.say(`   person sees  ${seenText(seen, stage.directory)}`);
    await person.call(`callgate.approvals.${verb}`, { approval, digest: seen.digest }).final;
    stage.say(`   person says  ${verb === "approve" ? "yes" : "no"}`);
  }
  stage.say(`   gate answers ${answer(await call.final, stage.directory)}`);
  stage.say(`   → ${moral}\n`);
}

function seenText({ destinations, role, taint, asks }: WholeQuestion, directory: string): string {
  const [ask] = asks;
  const why = ask?.reason === undefined || ask.reason === null ? "" : `, “${ask.reason}”`;
  const where = destinationsText(destinations).replaceAll(directory, "…");
  return `${where}, from role ${role}, tainted ${labelsText(taint)}${why}`;
}

function answer(message: ToolResponse, directory: string): string {
  switch (message.status) {
    case "result": {
      const text = message.content.trimEnd().replaceAll("\n", " ⏎ ").replaceAll(directory, "…");
      const shown = text.length > 90 ? `${text.slice(0, 90)}…` : text;
      return `result  class=${message.class} untrusted=${message.untrusted}  “${shown}”`;
    }
    case "denied":
      return `denied  ${message.reason}`;
    case "failed":
      return `failed  ${message.message}`;
    case "pending_approval":
      return "pending_approval";
  }
}

function because(content: string): string {
  const why = JSON.parse(content) as { grant: string | null; reason: string | null };
  const by = why.grant === null ? "no grant of this role fits" : `grant ${why.grant}`;
  return why.reason === null ? by : `${by}: ${why.reason}`;
}
