// Run in the guest as a provider's user: `tally` writes its text to FILE, a line a run, and answers with it; `hang` never
// answers. tally_provider.ts SOCKET FILE

import { appendFileSync } from "node:fs";
import { provide } from "../../src/client/provider.ts";

const [path = "", file = ""] = process.argv.slice(2);
await provide({
  to: { path },
  waitForBroker: true,
  reconnect: { delayMsMax: 500, giveUpAfterMs: 120_000 },
  tools: {
    tally: ({ arguments: text }) => {
      const { text: line } = JSON.parse(text) as { text: string };
      appendFileSync(file, `${line}\n`);
      return line;
    },
    hang: () => new Promise<string>(() => undefined),
  },
});
