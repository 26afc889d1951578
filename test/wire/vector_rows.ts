// What a row of the wire vectors asks for (fixtures/wire/README.md), held against what the codec gives.

import { decodeRow, encodeRow, type Row, rowBytes } from "../../src/cli/wire_rows.ts";

/** Whether a row of each file is met. @throws RowFault where it is no such row */
export const WIRE_VECTOR_FILES: Readonly<Record<string, (row: Row) => boolean>> = {
  "decode.jsonl": decodesAsTold,
  "encode.jsonl": encodesAsTold,
};

function decodesAsTold(row: Row): boolean {
  const { outcome, detail, reencoded_hex: reencoded } = decodeRow(row);
  const hex = row["reencoded_recipe"]
    ? rowBytes(row, "none", "reencoded_recipe").toString("hex")
    : row["reencoded_hex"];
  return outcome === row["outcome"] && detail === row["detail"] && reencoded === hex;
}

function encodesAsTold(row: Row): boolean {
  const { outcome, detail, hex } = encodeRow(row);
  const toldHex = row["outcome"] === "ok" ? rowBytes(row).toString("hex") : null;
  return outcome === row["outcome"] && detail === row["detail"] && hex === toldHex;
}
