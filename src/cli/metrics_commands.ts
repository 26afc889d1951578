// The rows of `callgate metrics` and `callgate traces`.

import type { CommandRow } from "./command_row.ts";

export const METRICS_ROWS: readonly CommandRow[] = [];
