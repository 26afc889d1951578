// Where a server comes from: a command that is run as a child, or an address. Each opening is a new process, or a new
// session over HTTP.

import type { Result } from "../../../base/faults.ts";
import { ChildTransport } from "./child_transport.ts";
import type { ServerCommand } from "./confinement.ts";
import { HeldPaths } from "./confinement_covers.ts";
import type { ExactArguments } from "./exact_arguments.ts";
import { guardedFetch } from "./guarded_fetch.ts";
import { endHttp, httpTransport, type McpSession, openSession, type SessionSettings } from "./mcp_client.ts";
import { ServerText } from "./server_text.ts";

export interface Opening {
  /** The fault is for the log. */
  readonly session: Promise<Result<McpSession>>;
  /** Resolves when nothing of it is left. Never rejects. */
  readonly gone: Promise<Gone>;
  /** `atOnce`: a process is not asked first. */
  stop(atOnce?: "atOnce"): Promise<void>;
  /** Whether what the server must not see is hidden from it still. */
  isHidden(): boolean;
}

export interface Gone {
  /** How it ended, for the log. */
  readonly words: string;
  /** There is no such program, or it may not be run, or not be confined: trying again is of no use. */
  readonly neverStarted: boolean;
  /** It ended by itself. */
  readonly byItself: boolean;
}

export interface ServerSource {
  /** For the log: no arguments, which may hold secrets. */
  readonly about: string;
  /** Of a process: whether it is confined. */
  readonly confined: boolean | undefined;
  open(settings: SessionSettings): Opening;
}

export interface SourceEffects {
  readonly exact: ExactArguments;
  readonly say: (line: string) => void;
  readonly monotonicMs: () => number;
}

export function commandSource(given: ServerCommand, effects: SourceEffects): ServerSource {
  const command = withHeld(given);
  return {
    about: `the command ${JSON.stringify(command.command)}`,
    confined: command.confinement !== "none",
    open(settings) {
      const { say, monotonicMs } = effects;
      const text = new ServerText({ say, monotonicMs });
      const transport = new ChildTransport({ command, text, ...effects });
      const gone = transport.gone.then(({ how, hopeless, ended, verdict }): Gone => {
        const left = ended === undefined || ended === 0 ? "" : `; ${ended} processes of its were ended`;
        const unknown = ended === undefined ? "; what it started could not be looked for" : "";
        const words = `${verdict === undefined ? "" : `${verdict}; `}${how}${left}${unknown}`;
        return { words, neverStarted: hopeless, byItself: !transport.isClosed && verdict === undefined };
      });
      const session = openSession(transport, settings);
      return {
        session,
        gone,
        stop: async (atOnce) => {
          await transport.close(atOnce);
          await gone;
        },
        isHidden: () => transport.isHidden,
      };
    },
  };
}

/** From one opening to the next. */
function withHeld(command: ServerCommand): ServerCommand {
  const { confinement } = command;
  if (confinement === undefined || confinement === "none") return command;
  return { ...command, confinement: { ...confinement, held: new HeldPaths() } };
}

export interface ServerAddress {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export function addressSource({ url, headers }: ServerAddress, { exact }: SourceEffects): ServerSource {
  return {
    about: url.origin,
    confined: undefined,
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
        isHidden: () => true, // it is not here
      };
    },
  };
}
