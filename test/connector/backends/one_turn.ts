// A process that takes one turn and prints it: environment.test.ts starts it with an environment of its choice.

import { BACKEND_KINDS } from "../../../src/connector/backends/settings.ts";
import { systemClock } from "../../../src/host/clock.ts";
import { backend, take } from "./rig.ts";

const kind = BACKEND_KINDS.find((one) => one === process.argv[2]) ?? "openai-chat";
const turn = await take(await backend({ kind, baseUrl: process.argv[3] ?? "" }, systemClock()));
process.stdout.write(JSON.stringify(turn));
