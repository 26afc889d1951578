// Run as a child process by inherited.test.ts: a caller over what it inherited. Exits with 0 after a
// clean close, with 42 where a lost connection is told as such.

import { type CallgateError, connect } from "../../src/library.ts";

const [how, end] = process.argv.slice(2);
const to = how === "stdio" ? ({ stdio: true } as const) : { fd: Number(how) };
const caller = await connect({ to, session: "child" });
const answer = await caller.call("hello", {}).final;
const told = caller.call("told", { answer });
if (end === "close") {
  await told.final;
  await caller.close();
} else {
  const code = await told.final.then(
    () => "answered",
    (error: CallgateError) => error.code,
  );
  process.exitCode = code === "lost" ? 42 : 1;
}
