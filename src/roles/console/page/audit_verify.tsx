// Verifying the audit from the page: against the checkpoint that this browser has kept, or one that a person
// pastes. What was found is said in the broker's words.

import { useState } from "preact/hooks";
import type { AuditPage, AuditVerdict } from "../../../client/answers.ts";
import { readLine } from "./audit_records.ts";
import {
  type Checkpoint,
  forgetCheckpoint,
  isCheckpoint,
  noteCheckpoint,
  notedCheckpoint,
} from "./checkpoints.ts";
import { Text } from "./inputs.tsx";
import type { Ask, Told } from "./page.ts";
import { Button, Fault, Moment, Panel } from "./parts.tsx";
import { Words } from "./words.tsx";

interface Verified {
  readonly told: Told<AuditVerdict>;
  /** What it was held against. */
  readonly against: string | undefined;
  readonly atMs: number;
}

export function AuditVerify({ ask }: { ask: Ask }) {
  const [noted, setNoted] = useState(() => notedCheckpoint(localStorage));
  const [given, setGiven] = useState("");
  const [busy, setBusy] = useState(false);
  const [verified, setVerified] = useState<Verified>();
  const own = given.trim();
  const problem =
    own === "" || isCheckpoint(own) ? undefined : "It must be NUMBER:HASH, the hash with 64 hex digits.";
  const verify = async () => {
    setBusy(true);
    const against = own === "" ? noted?.text : own;
    const told = await ask<AuditVerdict>(
      "callgate.audit.verify",
      against === undefined ? {} : { checkpoint: against },
    );
    const head = told.ok && told.value.ok ? await headOf(ask) : undefined;
    if (head !== undefined && noteCheckpoint(localStorage, head)) setNoted(head);
    setVerified({ told, against, atMs: Date.now() });
    setBusy(false);
  };
  const forget = () => {
    forgetCheckpoint(localStorage);
    setNoted(undefined);
  };
  return (
    <Panel title="Is it whole?">
      <p>
        Every record carries a hash of the one before. Verifying reads all that are kept, and finds one that
        was altered, is missing or is out of order. Only a checkpoint that was kept elsewhere shows that the
        end was cut off, or that all of it was written anew.
      </p>
      <div class="verify-row">
        <Text
          name="Checkpoint (optional)"
          value={given}
          onChange={setGiven}
          problem={problem}
          hint="NUMBER:HASH from the broker's log, or from callgate audit checkpoint."
        />
        <Button kind="primary" busy={busy} disabled={problem !== undefined} onClick={() => void verify()}>
          {busy ? "Verifying…" : "Verify the audit"}
        </Button>
      </div>
      <div role="status">
        {busy ? <progress aria-label="Reading the audit" /> : null}
        {verified !== undefined && !busy ? <Outcome {...verified} /> : null}
      </div>
      <Noted noted={noted} onForget={forget} />
    </Panel>
  );
}

/** The newest record's number and hash, where it can be had. */
async function headOf(ask: Ask): Promise<Checkpoint | undefined> {
  const page = await ask<AuditPage>("callgate.audit.export", { backward: true, limit: 1 });
  const line = page.ok ? page.value.lines[0] : undefined;
  const { record, hash } = readLine(line ?? "");
  const text = `${record?.seq}:${hash}`;
  return isCheckpoint(text) ? { text, notedAtMs: Date.now() } : undefined;
}

const BROKEN = { title: "The audit is not whole.", how: "" };

const OUTCOMES: Readonly<Record<string, typeof BROKEN>> = {
  whole: { title: "The audit is whole.", how: "notice-good" },
  // Retention took the record that it names: nothing is wrong, and nothing is shown to be right by it.
  checkpoint_removed: { title: "That checkpoint is too old.", how: "notice-warn" },
};

function Outcome({ told, against, atMs }: Verified) {
  if (!told.ok) return <Fault told={told} />;
  const { records, first_seq: first, last_seq: last, finding } = told.value;
  const { title, how } = OUTCOMES[finding === null ? "whole" : finding.kind] ?? BROKEN;
  const range = `${records.toLocaleString("en-US")} records, ${first} to ${last}`;
  const held =
    against === undefined ? "" : ` Held against the checkpoint of record ${against.split(":")[0]}.`;
  return (
    <div class={`notice ${how}`}>
      <p>
        <strong>{title}</strong>{" "}
        <Words text={`${finding === null ? "" : `${finding.sentence} `}${range}.${held}`} chars={1000} />
      </p>
      <Moment ms={atMs} />
    </div>
  );
}

function Noted({ noted, onForget }: { noted: Checkpoint | undefined; onForget: () => void }) {
  if (noted === undefined)
    return <p class="hint">When it is found whole, this browser notes where it ended, for the next time.</p>;
  return (
    <div class="noted">
      <p class="hint">
        This browser noted <Moment ms={noted.notedAtMs} how="both" />, and holds the audit against it:{" "}
        <code class="digest">{noted.text}</code>
      </p>
      <Button kind="quiet" onClick={onForget}>
        Forget it
      </Button>
    </div>
  );
}
