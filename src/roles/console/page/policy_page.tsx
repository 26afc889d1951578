// The policy in force, runtime grants included: which ways are open, as sentences, as a picture and as a table;
// what would be decided about a call; and the tools whose definitions nobody has looked at.

import { useState } from "preact/hooks";
import { counted } from "../../../base/json_text.ts";
import type { PolicyReach } from "../../../client/load_answers.ts";
import { useAsked } from "./asked.ts";
import { DecisionForm } from "./decision_form.tsx";
import type { PageProps } from "./page.ts";
import { Badge, Button, Confirm, Fault, Loading, Panel, PeerText } from "./parts.tsx";
import { pathWords } from "./reach.ts";
import { ReachPicture } from "./reach_picture.tsx";
import { ReachTable } from "./reach_table.tsx";
import { ToolDefinitions } from "./tool_definitions.tsx";
import { Words } from "./words.tsx";

export function PolicyPage(props: PageProps) {
  const { ask, say, live } = props;
  const { told, loading, again } = useAsked<PolicyReach>(ask, "callgate.grants.explain", {});
  const version = live.status?.policy;
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1}>Policy</h1>
        <div class="buttons">
          <Reload ask={ask} say={say} onDone={again} />
          <Button onClick={again} busy={loading}>
            Refresh
          </Button>
        </div>
      </header>
      {version === undefined ? null : (
        <p class="hint under-head">
          In force: <PeerText text={version.slice(0, 16)} />
          {live.status?.policy_stale === true ? " (the file on disk is another one)" : ""}
        </p>
      )}
      <Fault told={told} retry={again} />
      {told === undefined && loading ? <Loading what="what the policy comes to" /> : null}
      {told?.ok ? <Reached reach={told.value} /> : null}
      <Panel title="What would be decided?">
        <DecisionForm {...props} />
      </Panel>
      <Panel title="Announced tools">
        <ToolDefinitions ask={ask} say={say} />
      </Panel>
    </>
  );
}

function Reached({ reach }: { reach: PolicyReach }) {
  return (
    <>
      <Panel title="Open ways" aside={<OpenBadge count={reach.paths.length} />}>
        <OpenPaths reach={reach} />
      </Panel>
      <Panel title="Picture">
        <ReachPicture reach={reach} />
      </Panel>
      <Panel title="Who reaches what">
        <ReachTable reach={reach} />
      </Panel>
    </>
  );
}

function OpenBadge({ count }: { count: number }) {
  return count === 0 ? <Badge tone="good">none</Badge> : <Badge tone="bad">{counted(count, "way")}</Badge>;
}

/** Ways shown before a person asks for the rest. */
const PATHS_SHOWN = 12;

function OpenPaths({ reach: { paths, more } }: { reach: PolicyReach }) {
  const [all, setAll] = useState(false);
  if (paths.length === 0)
    return (
      <p>No way leads from untrusted content to sending, spending or executing without a person in it.</p>
    );
  const shown = all ? paths : paths.slice(0, PATHS_SHOWN);
  return (
    <>
      <p class="hint">
        Somebody who writes what a role reads can have these effects. Ask a person, or let the tool be used
        only while nothing untrusted was read.
      </p>
      <ol class="paths">
        {shown.map((path) => {
          const text = pathWords(path);
          return (
            <li key={`${text} ${path.taint.class}`}>
              <Words text={text} chars={1000} />{" "}
              <span class="muted">
                <Words text={`By ${path.by.join(", ")}.`} />
              </span>
            </li>
          );
        })}
      </ol>
      {shown.length < paths.length ? (
        <p class="more">
          <Button onClick={() => setAll(true)}>Show all {paths.length}</Button>
        </p>
      ) : null}
      {more ? <p class="hint">There are more than are told here.</p> : null}
    </>
  );
}

interface Reloaded {
  readonly reloaded: boolean;
  readonly refused: string | null;
}

function Reload({ ask, say, onDone }: Pick<PageProps, "ask" | "say"> & { onDone: () => void }) {
  const [busy, setBusy] = useState(false);
  const reload = async () => {
    setBusy(true);
    const told = await ask<Reloaded>("callgate.reload");
    setBusy(false);
    if (!told.ok) say(told.why, "bad");
    else if (told.value.reloaded) say("The config file was read again and is in force.", "good");
    else say(`The config file was not taken: ${told.value.refused ?? "it has mistakes"}`, "bad");
    onDone();
  };
  return (
    <Confirm
      label="Reload the config…"
      question="The config file is read again. If it is whole it is in force at once, for open sessions and waiting questions too; if not, nothing changes."
      verb="Reload"
      kind="primary"
      busy={busy}
      onConfirm={() => void reload()}
    />
  );
}
