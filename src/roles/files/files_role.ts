// The files provider as a program: roots from the command line, the tools behind the client
// library. It decides nothing about files; it turns requests into tool calls and answers back.

import { fault, ok, type Result } from "../../base/faults.ts";
import { type JsonObject, parseJsonObject } from "../../base/json.ts";
import { ARGUMENTS_LIMITS } from "../../base/limits.ts";
import type { Address } from "../../client/address.ts";
import type { ReconnectOptions } from "../../client/backoff.ts";
import { CallgateError } from "../../client/error.ts";
import type { Handled, Handler } from "../../client/jobs.ts";
import { type Provider, provide } from "../../client/provider.ts";
import { FILES_TOOLS, filesToolDefinitions } from "./definitions.ts";
import { FILES_LIMITS, type FilesLimits } from "./limits.ts";
import { parseRootOption } from "./root_option.ts";
import type { FilesRoot } from "./roots.ts";
import { createFilesTools, type FilesTool, type FilesTools } from "./tools.ts";

export interface FilesRoleOptions {
  readonly to: Address;
  /** Each as root_option.ts has it. */
  readonly roots: readonly string[];
  /** In front of each tool's name, `files.` for example; default none. */
  readonly prefix?: string | undefined;
  /** Whether the tools are announced, for which the role needs a grant. Default false: the config names them. */
  readonly announce?: boolean | undefined;
  readonly limits?: FilesLimits | undefined;
  /** How long, among others, a broker that is not there is waited for. */
  readonly reconnect?: ReconnectOptions | undefined;
}

export interface FilesRole {
  /** Lets running calls finish, then leaves the broker and lets go of the roots. */
  close(): Promise<void>;
  /** Resolves when the broker will not be reached any more, with why for the owner; undefined after `close`. */
  readonly ended: Promise<string | undefined>;
}

/** Serves until closed. The fault is for the owner. */
export async function serveFiles(options: FilesRoleOptions): Promise<Result<FilesRole>> {
  const roots = parseRoots(options.roots);
  if (!roots.ok) return roots;
  const limits = options.limits ?? FILES_LIMITS;
  const tools = await createFilesTools(roots.value, limits);
  if (!tools.ok) return tools;
  const provider = await connect(options, roots.value, limits, tools.value);
  if (!provider.ok) {
    tools.value.close();
    return provider;
  }
  return ok({
    close: async () => {
      await provider.value.close();
      tools.value.close();
    },
    ended: provider.value.ended.then((why) => why?.message),
  });
}

function parseRoots(options: readonly string[]): Result<readonly FilesRoot[]> {
  const roots: FilesRoot[] = [];
  for (const option of options) {
    const root = parseRootOption(option);
    if (!root.ok) return root;
    roots.push(root.value);
  }
  return ok(roots);
}

async function connect(
  options: FilesRoleOptions,
  roots: readonly FilesRoot[],
  limits: FilesLimits,
  tools: FilesTools,
): Promise<Result<Provider>> {
  const prefix = options.prefix ?? "";
  const handlers = FILES_TOOLS.map((name) => [`${prefix}${name}`, handlerOf(tools[name])] as const);
  const named = filesToolDefinitions(roots, limits).map((one) => ({ ...one, name: `${prefix}${one.name}` }));
  const announce = options.announce === true ? { announce: named } : {};
  try {
    return ok(
      await provide({
        to: options.to,
        waitForBroker: true,
        reconnect: options.reconnect,
        tools: Object.fromEntries(handlers),
        ...announce,
      }),
    );
  } catch (error) {
    if (error instanceof CallgateError) return fault(error.message);
    throw error;
  }
}

/** The library's way to say that a call failed is a thrown error, so that is done here, at its edge. */
function handlerOf(tool: FilesTool): Handler {
  return async ({ arguments: text, signal }): Promise<Handled> => {
    const args = parseArguments(text);
    if (args === undefined) throw new Error("the arguments are not one strict JSON object");
    const answer = await tool(args, signal).catch((error: unknown) => {
      // A bug of ours: the library would send its message on, and that might name a path.
      throw new Error("the files provider met a fault of its own", { cause: error });
    });
    if ("failed" in answer) throw new Error(answer.failed);
    return answer;
  };
}

function parseArguments(text: string): JsonObject | undefined {
  const parsed = parseJsonObject(text, ARGUMENTS_LIMITS);
  return parsed.ok ? parsed.value : undefined;
}
