// `callgate check`: what is wrong with a config, and what in it is dangerous, one line each in the
// form that editors jump to. Decides nothing itself: how a config is loaded is passed in.

import type { Result } from "../base/faults.ts";

export interface Finding {
  /** From 1. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
  readonly message: string;
}

export interface Warning extends Finding {
  readonly code: string;
}

export interface CheckOptions {
  readonly path: string;
  /** One JSON object instead of lines. */
  readonly json: boolean;
  /** Either all errors, or the warnings of a config without any. */
  readonly load: (
    path: string,
  ) => Promise<Result<{ readonly warnings: readonly Warning[] }, readonly Finding[]>>;
  /** Takes whole lines, with their line feeds. */
  readonly write: (text: string) => void;
}

/** The exit code: 0 where there is no error, else 1. Warnings do not count. */
export async function checkConfig(options: CheckOptions): Promise<number> {
  const loaded = await options.load(options.path);
  const errors = loaded.ok ? [] : loaded.fault;
  const warnings = loaded.ok ? loaded.value.warnings : [];
  options.write(
    options.json ? asJson(options.path, errors, warnings) : asLines(options.path, errors, warnings),
  );
  return loaded.ok ? 0 : 1;
}

function asJson(path: string, errors: readonly Finding[], warnings: readonly Warning[]): string {
  const places = (found: Finding) => ({ line: found.line, column: found.column, message: found.message });
  const report = {
    file: path,
    ok: errors.length === 0,
    errors: errors.map(places),
    warnings: warnings.map((warning) => ({ code: warning.code, ...places(warning) })),
  };
  return `${JSON.stringify(report)}\n`;
}

function asLines(path: string, errors: readonly Finding[], warnings: readonly Warning[]): string {
  const place = (found: Finding) => `${path}:${found.line}:${found.column}`;
  const lines = [
    ...errors.map((error) => `${place(error)}: error: ${error.message}`),
    ...warnings.map((warning) => `${place(warning)}: warning: ${warning.message} [${warning.code}]`),
    summary(path, errors.length, warnings.length),
  ];
  return `${lines.join("\n")}\n`;
}

function summary(path: string, errors: number, warnings: number): string {
  if (errors > 0) return `${path}: ${counted(errors, "error")}; this config would be refused`;
  return warnings > 0
    ? `${path}: no errors, ${counted(warnings, "warning")}`
    : `${path}: no errors, no warnings`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
