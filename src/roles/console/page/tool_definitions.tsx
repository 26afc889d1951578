// Definitions that providers announced and nobody has taken: each beside the one that is pinned, with what
// differs, and its acceptance by the digest that was shown. Every word of them is a provider's.

import { useState } from "preact/hooks";
import { shownJson, UNFOLDED } from "../../../base/json_text.ts";
import { useAsked } from "./asked.ts";
import { type DiffLine, diffOf } from "./definitions.ts";
import type { PageProps } from "./page.ts";
import { Badge, Button, Confirm, Empty, Fault, JsonText, Loading, PeerText } from "./parts.tsx";
import { Words } from "./words.tsx";

interface ToolLine {
  readonly name: string;
  readonly in_service: boolean;
  /** `waiting`: one that nobody has accepted. `unseen`: it serves since the config names the tool, and nobody has looked at it. */
  readonly definition?: "waiting" | "unseen" | "accepted";
}

interface Definition {
  readonly digest: string;
  readonly definition: unknown;
}

interface ToolDiff {
  readonly tool: string;
  readonly role: string;
  readonly pinned: (Definition & { readonly accepted_by: string }) | null;
  readonly announced: Definition | null;
}

export function ToolDefinitions({ ask, say }: Pick<PageProps, "ask" | "say">) {
  const asked = useAsked<{ readonly tools: readonly ToolLine[] }>(ask, "callgate.tools.list", {});
  const { told, loading, again } = asked;
  if (told === undefined) return loading ? <Loading what="definitions" /> : null;
  if (!told.ok) return <Fault told={told} retry={again} />;
  const open = told.value.tools.filter(
    ({ definition }) => definition === "waiting" || definition === "unseen",
  );
  if (open.length === 0) return <Empty>Every announced definition that serves has been accepted.</Empty>;
  return (
    <ul class="definitions">
      {open.map((tool) => (
        <OneTool key={tool.name} ask={ask} say={say} tool={tool} onDone={again} />
      ))}
    </ul>
  );
}

interface OneProps extends Pick<PageProps, "ask" | "say"> {
  readonly tool: ToolLine;
  readonly onDone: () => void;
}

function OneTool({ ask, say, tool, onDone }: OneProps) {
  const [opened, setOpened] = useState(false);
  const isWaiting = tool.definition === "waiting";
  return (
    <li>
      <div class="definition-head">
        <PeerText text={tool.name} chars={80} />
        <Badge tone={isWaiting ? "warn" : "info"}>
          {isWaiting ? "waits to be accepted" : "serves, not looked at"}
        </Badge>
        <span class="muted">{tool.in_service ? "in service" : "out of service"}</span>
        <Button onClick={() => setOpened(!opened)}>
          {opened ? "Close" : "Look at it"}
          <span class="unseen">: {tool.name}</span>
        </Button>
      </div>
      {opened ? <Difference ask={ask} say={say} tool={tool} onDone={onDone} /> : null}
    </li>
  );
}

function Difference({ ask, say, tool, onDone }: OneProps) {
  const [busy, setBusy] = useState(false);
  const { told, loading, again } = useAsked<ToolDiff>(ask, "callgate.tools.diff", { tool: tool.name });
  if (told === undefined) return loading ? <Loading what="the definition" /> : null;
  if (!told.ok) return <Fault told={told} retry={again} />;
  const { role, pinned, announced } = told.value;
  const offered = announced ?? pinned;
  if (offered === null) return <Empty>It waits no longer.</Empty>;
  const accept = async () => {
    setBusy(true);
    const answer = await ask("callgate.tools.accept", { tool: tool.name, digest: offered.digest });
    setBusy(false);
    if (answer.ok) say(`The definition of ${tool.name} is accepted.`, "good");
    else say(answer.why, "bad");
    again();
    onDone();
  };
  return (
    <div class="definition">
      <p>
        <Words text={introWords(role, pinned, announced)} />
      </p>
      {pinned !== null && announced !== null ? (
        <DiffText lines={diffOf(linesOf(pinned), linesOf(announced))} />
      ) : (
        <JsonText text={JSON.stringify(offered.definition)} />
      )}
      <p class="hint">
        Digest <code class="digest">{offered.digest}</code>
      </p>
      <Confirm
        label="Accept this definition…"
        question={acceptQuestion(pinned !== null && announced !== null)}
        verb="Accept it"
        kind="primary"
        busy={busy}
        onConfirm={() => void accept()}
      />
    </div>
  );
}

function introWords(role: string, pinned: ToolDiff["pinned"], announced: ToolDiff["announced"]): string {
  if (announced === null)
    return `Role ${role} announced it, and it serves because the config names the tool. These are the provider's own words:`;
  if (pinned === null) return `Role ${role} announced it. These are the provider's own words:`;
  return `Role ${role} announced another definition than the one that is pinned. What it takes away is marked −, what it adds is marked +:`;
}

function acceptQuestion(isChange: boolean): string {
  const first =
    "The tool serves under exactly this definition from now on; another one is out of service until it is accepted.";
  return isChange ? `${first} Remembered approvals of the old one end.` : first;
}

function linesOf({ definition }: Definition): readonly string[] {
  return shownJson(JSON.stringify(definition), UNFOLDED).lines;
}

const SIGNS = { same: " ", gone: "−", new: "+" } as const;
const SPOKEN = { same: "", gone: "taken away: ", new: "added: " } as const;

function DiffText({ lines }: { lines: readonly DiffLine[] }) {
  return (
    <pre class="diff">
      {lines.map(({ kind, text }, i) => (
        <span key={`${i} ${kind}`} class={`diff-${kind}`}>
          <span aria-hidden="true">{SIGNS[kind]} </span>
          <span class="unseen">{SPOKEN[kind]}</span>
          {`${text}\n`}
        </span>
      ))}
    </pre>
  );
}
