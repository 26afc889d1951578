#!/usr/bin/env node
// The command: argv in, exit status out.

// First of all: at SIGUSR1 Node opens its debugger, which asks nobody who he is, so whoever reaches its port could run
// code in a broker, or in a role that holds a secret.
process.on("SIGUSR1", () => undefined);

const [{ runProgram }, { processTerminal }] = await Promise.all([
  import("../src/cli/program.ts"),
  import("../src/cli/terminal.ts"),
]);
process.exitCode = await runProgram(process.argv.slice(2), processTerminal());
