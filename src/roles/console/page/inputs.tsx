// Inputs with their names, as forms and filters use them.

import { Field } from "./parts.tsx";

export interface ChoiceProps {
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly none: string;
  readonly options: readonly string[];
}

export function Choice({ name, value, onChange, none, options }: ChoiceProps) {
  return (
    <Field name={name}>
      {(given) => (
        <select {...given} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{none}</option>
          {options.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export interface TextProps {
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: string;
  readonly problem?: string | undefined;
  readonly placeholder?: string;
}

export function Text({ name, value, onChange, hint, problem, placeholder }: TextProps) {
  return (
    <Field name={name} hint={hint} problem={problem}>
      {(given) => (
        <input
          {...given}
          value={value}
          placeholder={placeholder}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** What narrows a list while it is typed. */
export function Search({ name, value, onChange, placeholder }: TextProps) {
  return (
    <Field name={name}>
      {(given) => (
        <input
          {...given}
          type="search"
          value={value}
          placeholder={placeholder}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A moment in local time, as the browser's own input has it: `2026-11-30T12:00`; empty: none. */
export function Time({ name, value, onChange }: TextProps) {
  return (
    <Field name={name}>
      {(given) => (
        <input
          {...given}
          type="datetime-local"
          step={1}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
