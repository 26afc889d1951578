// The rows of `callgate console`.

import type { CommandRow } from "./command_row.ts";

export const CONSOLE_ROWS: readonly CommandRow[] = [];
