// The pages that listen: server-sent events, the same to all of them. Invariant: so many streams, so many bytes that wait in
// each; whoever takes too little is dropped (the page connects again and is told everything anew).

import type { ServerResponse } from "node:http";
import type { PageEvent } from "./api.ts";
import type { ConsoleEffects } from "./effects.ts";
import type { Login } from "./logins.ts";

export const STREAMS_OF_LOGIN_MAX = 8;
const STREAMS_MAX = 64;
/** Unread bytes of one stream. All that is told at the beginning must fit. */
export const UNREAD_BYTES_MAX = 8_388_608;
/** A comment, so that what stands between and the page see that we live. */
export const HEARTBEAT_MS = 15_000;

interface Stream {
  readonly response: ServerResponse;
  readonly login: Login;
}

export class EventStreams {
  readonly #effects: ConsoleEffects;
  readonly #onFirst: () => void;
  readonly #streams = new Set<Stream>();
  #callOff: (() => void) | undefined;

  /** `onFirst` is told when somebody begins to listen while nobody did. */
  constructor(effects: ConsoleEffects, onFirst: () => void) {
    this.#effects = effects;
    this.#onFirst = onFirst;
  }

  get listening(): number {
    return this.#streams.size;
  }

  /** Whether this login may open one more. */
  hasRoom(login: Login): boolean {
    const own = [...this.#streams].filter((one) => one.login === login).length;
    return own < STREAMS_OF_LOGIN_MAX && this.#streams.size < STREAMS_MAX;
  }

  /** Tells `greeting` first. The stream ends with its login, or when the page goes. */
  open(response: ServerResponse, login: Login, greeting: readonly PageEvent[]): void {
    const stream = { response, login };
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
    response.write(": callgate\n\n");
    this.#streams.add(stream);
    const end = () => this.#drop(stream);
    login.ended.addEventListener("abort", end, { once: true });
    response.on("error", end).on("close", () => {
      login.ended.removeEventListener("abort", end);
      this.#drop(stream);
    });
    for (const event of greeting) this.#write(stream, textOf(event));
    if (this.#streams.size === 1) this.#onFirst();
    this.#callOff ??= this.#effects.after(HEARTBEAT_MS, () => this.#beat());
  }

  tell(event: PageEvent): void {
    if (this.#streams.size === 0) return;
    const text = textOf(event);
    for (const stream of [...this.#streams]) this.#write(stream, text);
  }

  close(): void {
    for (const stream of [...this.#streams]) this.#drop(stream);
  }

  #beat(): void {
    this.#callOff = undefined;
    for (const stream of [...this.#streams]) this.#write(stream, ": still here\n\n");
    if (this.#streams.size > 0) this.#callOff = this.#effects.after(HEARTBEAT_MS, () => this.#beat());
  }

  #write(stream: Stream, text: string): void {
    if (!this.#streams.has(stream)) return;
    stream.response.write(text);
    if (stream.response.writableLength > UNREAD_BYTES_MAX) this.#drop(stream);
  }

  #drop(stream: Stream): void {
    if (!this.#streams.delete(stream)) return;
    stream.response.destroy(); // not its end: who reads nothing would never get there
    if (this.#streams.size > 0) return;
    this.#callOff?.();
    this.#callOff = undefined;
  }
}

/** JSON has no line ends of its own where it was written without indentation. */
function textOf({ event, data }: PageEvent): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
