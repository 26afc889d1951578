// Where a server comes from: a command that is run as a child, or an address. Each opening is a new process, or a new
// session over HTTP.

import type { Result } from "../../../base/faults.ts";
import { ChildTransport } from "./child_transport.ts";
import type { ExactArguments } from "./exact_arguments.ts";
import { guardedFetch } from "./guarded_fetch.ts";
import { endHttp, httpTransport, type McpSession, openSession, type SessionSettings } from "./mcp_client.ts";
import type { ServerCommand } from "./server_process.ts";
import { ServerText } from "./server_text.ts";

export interface Opening {
  /** The fault is for the log. */
  readonly session: Promise<Result<McpSession>>;
  /** Resolves when nothing of it is left. Never rejects. */
  readonly gone: Promise<Gone>;
  stop(): Promise<void>;
}

export interface Gone {
  /** How it ended, for the log. */
  readonly words: string;
  /** There is no such program, or it may not be run: trying again is of no use. */
  readonly neverStarted: boolean;
  /** It ended by itself. */
  readonly byItself: boolean;
}

export interface ServerSource {
  /** For the log: no arguments, which may hold secrets. */
  readonly about: string;
  open(settings: SessionSettings): Opening;
}

export interface SourceEffects {
  readonly exact: ExactArguments;
  readonly say: (line: string) => void;
  readonly monotonicMs: () => number;
}

export function commandSource(command: ServerCommand, effects: SourceEffects): ServerSource {
  return {
    about: `the command ${JSON.stringify(command.command)}`,
    open(settings) {
      const { say, monotonicMs } = effects;
      const text = new ServerText({ say, monotonicMs });
      const transport = new ChildTransport({ command, text, ...effects });
      let stopped = false;
      const gone = transport.gone.then(({ how, started, ended, verdict }): Gone => {
        const left = ended === undefined || ended === 0 ? "" : `; ${ended} processes of its were ended`;
        const unknown = ended === undefined ? "; what it started could not be looked for" : "";
        const words = `${verdict === undefined ? "" : `${verdict}; `}${how}${left}${unknown}`;
        return { words, neverStarted: !started, byItself: !stopped && verdict === undefined };
      });
      const session = openSession(transport, settings);
      return {
        session,
        gone,
        stop: async () => {
          stopped = true;
          await transport.close();
          await gone;
        },
      };
    },
  };
}

export interface ServerAddress {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export function addressSource({ url, headers }: ServerAddress, { exact }: SourceEffects): ServerSource {
  return {
    about: url.origin,
    open(settings) {
      let end: (words: string, byItself: boolean) => void = () => {};
      const gone = new Promise<Gone>((resolve) => {
        end = (words, byItself) => resolve({ words, neverStarted: false, byItself });
      });
      const transport = httpTransport({ url, headers, fetch: guardedFetch({ exact }) });
      const stop = async () => {
        await endHttp(transport);
        end("the session was closed", false);
      };
      const onUnheard = () => void stop();
      const session = openSession(transport, { ...settings, onUnheard }).then((opened) => {
        if (!opened.ok) end(opened.fault, false);
        return opened;
      });
      return {
        session,
        gone,
        stop,
      };
    },
  };
}
