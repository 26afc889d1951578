// The rows of `callgate tail`.

import type { CommandRow } from "./command_row.ts";

export const TAIL_ROWS: readonly CommandRow[] = [];
