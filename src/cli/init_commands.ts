// The rows of `callgate init`.

import type { CommandRow } from "./command_row.ts";

export const INIT_ROWS: readonly CommandRow[] = [];
