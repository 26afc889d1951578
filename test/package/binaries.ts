// Which files of machine code an installed package must have, by architecture and C library, and what such a file is, by its
// first bytes.

import { readFileSync } from "node:fs";

export const ARCHITECTURES = ["x64", "arm64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** e_machine of ELF. */
const MACHINES: Readonly<Record<Architecture, number>> = { x64: 0x3e, arm64: 0xb7 };
const ELF = 0x7f454c46;
const MACHINE_AT = 18;

/** Below node_modules. Of lmdb: one for each Node whose binary interface it knows, and one for all others. */
export function wantedBinaries(architecture: Architecture): readonly string[] {
  const koffi = `@koromix/koffi-linux-${architecture}`;
  const lmdb = `@lmdb/lmdb-linux-${architecture}`;
  return [
    `${koffi}/linux_${architecture}/koffi.node`,
    `${koffi}/musl_${architecture}/koffi.node`,
    `${lmdb}/node.abi115.glibc.node`,
    `${lmdb}/node.abi127.glibc.node`,
    `${lmdb}/node.napi.glibc.node`,
    `${lmdb}/node.napi.musl.node`,
  ];
}

/** Why the file is not machine code for that architecture and C library; undefined: it is. */
export function unfitBinary(path: string, architecture: Architecture): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return "is not there";
  }
  if (bytes.length < 64 || bytes.readUInt32BE() !== ELF) return "is no ELF file";
  if (bytes.readUInt16LE(MACHINE_AT) !== MACHINES[architecture]) return `is not for ${architecture}`;
  const isGlibc = bytes.includes("libc.so.6\0"); // what it names as needed
  const wantsMusl = path.includes("musl");
  return isGlibc === wantsMusl ? `is for ${isGlibc ? "glibc" : "musl"}` : undefined;
}
