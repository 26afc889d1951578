// Colours: what a text is (a heading, a refusal, something that waits), and how a terminal shows that. Text is
// painted after it was escaped, so nobody else's text brings colours of its own, and none is hidden by them.

export type Tone =
  /** The name of a column, a section or a command. */
  | "heading"
  | "good"
  /** Denied, failed, refused, broken. */
  | "bad"
  /** Asks a person, or waits for one. */
  | "waiting"
  /** Somebody else could have written what it is about. */
  | "untrusted"
  /** A warning that nobody may overlook. */
  | "loud"
  /** Beside what matters. */
  | "quiet";

/** Gives the text its tone, or leaves it plain. The text is escaped already. */
export type Paint = (tone: Tone | undefined, text: string) => string;

/** Where something is shown: in which colours, and how wide it is, where that is known. */
export interface Look {
  readonly paint: Paint;
  readonly columns: number | undefined;
}

export const plain: Paint = (_, text) => text;
/** Of files and pipes. */
export const PLAIN: Look = { paint: plain, columns: undefined };

const CODES: Readonly<Record<Tone, string>> = {
  heading: "1",
  good: "32",
  bad: "1;31",
  waiting: "33",
  untrusted: "33",
  loud: "1;7;33",
  quiet: "2",
};

const RESET = "\u001b[0m";
/** What `coloured` adds, and nothing else that a terminal obeys. */
export const SGR = /\u001b\[[0-9;]*m/u;

export const coloured: Paint = (tone, text) =>
  tone === undefined || text === "" ? text : `\u001b[${CODES[tone]}m${text}${RESET}`;

/** Whether a stream takes colours: FORCE_COLOR decides, then NO_COLOR, then whether it is a terminal that can. */
export function takesColours(
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  const { FORCE_COLOR: forced = "", NO_COLOR: refused = "", TERM: kind } = env;
  if (forced !== "") return forced !== "0" && forced !== "false";
  return refused === "" && isTerminal && kind !== "dumb";
}

/** The tone of a state, a status or a verdict of the broker's own; none for what it does not know. */
export function toneOf(word: string): Tone | undefined {
  return TONES.get(word.split(/[ :,]/, 1)[0] ?? "");
}

const TONES: ReadonlyMap<string, Tone> = new Map(
  Object.entries({
    bad: ["denied", "deny", "failed", "refused", "expired", "unknown", "frozen"],
    waiting: ["ask", "asked", "pending", "pending_approval", "waiting", "conditional"],
    good: ["allow", "approved", "result"],
  } as const).flatMap(([tone, words]) => words.map((word) => [word, tone as Tone] as const)), // the keys are tones
);
