// Where a secret of the connector's config is: a file, or a credential that the service manager hands over
// (systemd's LoadCredential=), and how it is read. Invariants: a secret is never in the config itself, a file of one
// can't be read by everybody nor be written or replaced by others, and no fault quotes what a file holds.

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { fault, ok, type Result } from "../base/faults.ts";
import { secretFromFileBytes } from "../connector/secret.ts";
import { type Located, type Position, quote } from "./config_faults.ts";
import { checkFile, errnoCode } from "./trusted_paths.ts";

export type SecretSource =
  /** `path` is absolute. */
  | { readonly kind: "file"; readonly path: string; readonly at: Position }
  /** `name` is a file in the directory that the service manager names. */
  | { readonly kind: "credential"; readonly name: string; readonly at: Position };

/** What the service manager tells a service of its credentials, and who the process is. */
export interface SecretPlaces {
  /** $CREDENTIALS_DIRECTORY. */
  readonly credentialsDirectory: string | undefined;
  readonly uid: number;
}

export function secretPlaces(): SecretPlaces {
  return {
    credentialsDirectory: process.env["CREDENTIALS_DIRECTORY"],
    uid: process.geteuid?.() ?? -1,
  };
}

/** As systemd has it: the name of a file, nothing that leads elsewhere. */
export function isCredentialName(name: string): boolean {
  return name.length <= 255 && /^[A-Za-z0-9_][A-Za-z0-9_.:-]*$/.test(name);
}

/** More than any secret or key has; what is longer was not meant. */
const SECRET_FILE_BYTES_MAX = 16_384;
const READABLE_BY_ALL = 0o004;

/** Reads it now: a file that was replaced since gives the new secret. Ends of line behind it are no part of it. */
export async function readSecret(source: SecretSource, places: SecretPlaces): Promise<Result<string>> {
  const path = pathOf(source, places);
  if (!path.ok) return path;
  const read = await readPrivate(path.value, places.uid);
  return read.ok ? ok(read.value) : fault(`${quote(path.value)} ${read.fault}`);
}

/** Whether that credential can be looked at, in this process. */
export function isReachable(source: SecretSource, { credentialsDirectory }: SecretPlaces): boolean {
  return source.kind === "file" || credentialsDirectory !== undefined;
}

/** The one key or the other, whichever was given, as a source; `file` is made absolute by its reader. */
export function sourceOf(
  file: Located<string> | undefined,
  credential: Located<string> | undefined,
): SecretSource | undefined {
  if (file !== undefined) return { kind: "file", path: file.value, at: file.at };
  if (credential !== undefined) return { kind: "credential", name: credential.value, at: credential.at };
  return undefined;
}

function pathOf(source: SecretSource, { credentialsDirectory }: SecretPlaces): Result<string> {
  if (source.kind === "file") return ok(source.path);
  if (credentialsDirectory?.startsWith("/")) return ok(join(credentialsDirectory, source.name));
  return fault(
    `the credential ${quote(source.name)} is not there: CREDENTIALS_DIRECTORY is not set. ` +
      "Run it as a service with LoadCredential=, or name a file",
  );
}

/** The fault goes on after the quoted path. */
async function readPrivate(path: string, uid: number): Promise<Result<string>> {
  const trusted = checkFile(path, uid);
  if (!trusted.ok) return fault(`can't be used: ${trusted.fault.sentence}`);
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK a FIFO in the file's place would hold the daemon for ever.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return await readOpened(file);
  } catch (error) {
    const code = errnoCode(error);
    return fault(code === "ENOENT" ? "does not exist" : `can't be read (${code})`);
  } finally {
    await file?.close();
  }
}

async function readOpened(file: FileHandle): Promise<Result<string>> {
  const stats = await file.stat();
  if (!stats.isFile()) return fault("is no regular file");
  // The group's bits are also the mask of an access list, by which systemd lets the service's user read.
  if ((stats.mode & READABLE_BY_ALL) !== 0) return fault("can be read by every user: chmod o-r it");
  const buffer = Buffer.alloc(SECRET_FILE_BYTES_MAX + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    length += bytesRead;
    if (bytesRead === 0 || length === buffer.length) break;
  }
  if (length > SECRET_FILE_BYTES_MAX) return fault(`is longer than ${SECRET_FILE_BYTES_MAX} bytes`);
  const secret = secretFromFileBytes(buffer.subarray(0, length));
  if (!secret.ok) return fault("is not UTF-8");
  return secret.value === "" ? fault("is empty") : secret;
}
