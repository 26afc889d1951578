// A server's progress on its way to the client: pieces of the result's own text, so it is labelled, recorded and bounded as
// the result is. The text of a result that had progress is one JSON object all the same, `{"progress":[…],"content":…}`,
// of which each piece that comes before the last one adds a notice. Pure; both adapters know it.

/** What an MCP server says of a call that runs. */
export interface ProgressNotice {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

const OPEN = '{"progress":[';
const NEXT = ",";
const MESSAGE_CHARS_MAX = 300;
const PIECE_CHARS_MAX = 4096;

/** What a server's notification says, as far as it is of use; undefined where it is none. */
export function progressNotice(params: object): ProgressNotice | undefined {
  const { progress, total, message } = params as Readonly<Record<keyof ProgressNotice, unknown>>;
  if (!isAmount(progress)) return undefined;
  return {
    progress,
    ...(isAmount(total) ? { total } : {}),
    ...(typeof message === "string" ? { message: cut(message) } : {}),
  };
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function cut(text: string): string {
  return text.slice(0, MESSAGE_CHARS_MAX).replace(/[\ud800-\udbff]$/, "");
}

/** `first`: nothing of the result was sent before it. */
export function progressPiece(notice: ProgressNotice, first: boolean): string {
  return `${first ? OPEN : NEXT}${JSON.stringify(notice)}`;
}

/** The last piece: `result` is the JSON text of an object with members. */
export function resultAfterProgress(result: string): string {
  return `],${result.slice(1)}`;
}

/** What a piece of a result says; undefined where it is the result itself. */
export function noticeIn(piece: string): ProgressNotice | undefined {
  if (piece.length > PIECE_CHARS_MAX) return undefined;
  const text = [OPEN, NEXT].find((before) => piece.startsWith(before));
  if (text === undefined) return undefined;
  try {
    return progressNotice(JSON.parse(piece.slice(text.length)) as object);
  } catch {
    return undefined;
  }
}
