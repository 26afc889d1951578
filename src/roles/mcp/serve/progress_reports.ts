// What a client that wants to hear of progress is told while its call is open: the server's own progress as it comes, and
// again and again that the call waits or runs, so that the client goes on waiting. Invariant: each notice of a request's
// says more progress than the one before it, as the protocol has it.

import type { Effects } from "../../../client/effects.ts";
import type { ProgressNotice } from "../progress.ts";
import { waitingWords } from "./call_result.ts";
import type { OpenCall } from "./open_call.ts";

export const PROGRESS_MS = 5000;
/** What a notice of ours adds, so that a server's own next one still adds something. */
const BEAT = 0.001;

export type Report = (notice: ProgressNotice) => void;

/** The function returned ends it. */
export function reportWhile(call: OpenCall, report: Report, { after }: Pick<Effects, "after">): () => void {
  const reports = new Reports(report);
  let callOff = (): void => undefined;
  const later = () => {
    callOff();
    callOff = after(PROGRESS_MS, () => {
      reports.beat(call);
      later();
    });
  };
  const quiet = call.listen(() => {
    if (call.answer !== undefined) return;
    reports.changed(call);
    later();
  });
  later();
  return () => {
    callOff();
    quiet();
  };
}

class Reports {
  readonly #report: Report;
  #last: ProgressNotice | undefined;
  #heard: ProgressNotice | undefined;

  constructor(report: Report) {
    this.#report = report;
  }

  changed(call: OpenCall): void {
    const { notice } = call;
    if (notice === undefined || notice === this.#heard) return this.beat(call);
    this.#heard = notice;
    if (this.#last === undefined || notice.progress > this.#last.progress) this.#say(notice);
    else this.beat(call);
  }

  beat({ question, notice }: OpenCall): void {
    const { progress = 0, total } = this.#last ?? {};
    const message =
      question === undefined ? (notice?.message ?? "It runs.") : `It ${waitingWords(question)}.`;
    this.#say({ progress: more(progress), ...(total === undefined ? {} : { total }), message });
  }

  #say(notice: ProgressNotice): void {
    this.#last = notice;
    this.#report(notice);
  }
}

/** Also where a thousandth is lost in what is there. */
function more(progress: number): number {
  return Math.max(Number((progress + BEAT).toFixed(3)), progress * (1 + 2 * Number.EPSILON));
}
