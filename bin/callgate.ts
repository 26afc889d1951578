#!/usr/bin/env node
import { runProgram } from "../src/cli/program.ts";
import { processTerminal } from "../src/cli/terminal.ts";

process.exitCode = await runProgram(process.argv.slice(2), processTerminal());
