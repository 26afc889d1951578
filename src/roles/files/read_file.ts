// read_file: a window of a UTF-8 text file, as it is.

import { ok, type Result } from "../../base/faults.ts";
import type { ReadArguments } from "./arguments.ts";
import { openText, readBytes } from "./descriptor.ts";
import type { FileFault } from "./file_fault.ts";
import type { Place } from "./roots.ts";
import { LOOK_BEHIND_BYTES, textWindow } from "./text_window.ts";
import type { ToolText } from "./tool_text.ts";
import { pinPath, usePinned } from "./walk.ts";

/** Only the window is looked at: a file that is binary elsewhere is read where it is text. */
export async function readText(
  place: Place,
  args: ReadArguments,
  signal: AbortSignal,
): Promise<Result<ToolText, FileFault>> {
  return usePinned(pinPath(place.root, place.names, signal), async (pinned) => {
    const file = await openText(pinned);
    if (!file.ok) return file;
    try {
      const start = Math.max(0, args.offset - LOOK_BEHIND_BYTES);
      const from = args.offset - start;
      const bytes = await readBytes(file.value, start, from + args.limit + 1, signal);
      if (!bytes.ok) return bytes;
      const window = textWindow(bytes.value, from, args.limit);
      return window.ok ? ok({ content: window.value.text, truncated: window.value.truncated }) : window;
    } finally {
      await file.value.close();
    }
  });
}
