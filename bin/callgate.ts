#!/usr/bin/env node
// The command: argv in, exit status out.

import { runProgram } from "../src/cli/program.ts";
import { processTerminal } from "../src/cli/terminal.ts";

process.exitCode = await runProgram(process.argv.slice(2), processTerminal());
