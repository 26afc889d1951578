// A table that is walked with the keyboard: one tab stop, arrows (or j and k) from row to row, Enter opens.
// On a phone each row is a card, its cells named. Rows keep their place in the focus while others come and go.

import { Component, type ComponentChildren } from "preact";
import { useCallback, useRef, useState } from "preact/hooks";

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** `number`: aligned right. `wide`: takes what room there is. `tight`: never broken into lines. */
  readonly kind?: "number" | "wide" | "tight";
}

export interface TableProps<Row> {
  /** Read to those who don't see the page; not shown. */
  readonly caption: string;
  /** The first one names the row. */
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  /** Makes each row's name a button. */
  readonly onOpen?: (row: Row) => void;
  /** The id of the row that is open. */
  readonly current?: string | undefined;
  /** More classes of a row: `dim`. */
  readonly rowClass?: (row: Row) => string;
}

export function Table<Row>(props: TableProps<Row>) {
  const { caption, columns, rows, idOf, current, rowClass, onOpen } = props;
  const [walked, setWalked] = useState<string>();
  const opening = useLatest(onOpen);
  const stop = [walked, current].find((id) => id !== undefined && rows.some((row) => idOf(row) === id));
  const first = rows[0];
  const tabStop = stop ?? (first === undefined ? undefined : idOf(first));
  return (
    <table class={onOpen === undefined ? "table" : "table table-open"}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ head, kind }) => (
            <th key={head} scope="col" class={kind}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const id = idOf(row);
          return (
            <TableRow
              key={id}
              row={row}
              id={id}
              columns={columns}
              look={rowClass?.(row) ?? ""}
              isStop={id === tabStop}
              isCurrent={id === current}
              onFocus={setWalked}
              onOpen={onOpen === undefined ? undefined : opening}
            />
          );
        })}
      </tbody>
    </table>
  );
}

/** A function that stays the same, and calls what was given last. */
function useLatest<Row>(onOpen: ((row: Row) => void) | undefined): (row: Row) => void {
  const latest = useRef(onOpen);
  latest.current = onOpen;
  return useCallback((row: Row) => latest.current?.(row), []);
}

interface RowProps<Row> {
  readonly row: Row;
  readonly id: string;
  readonly columns: readonly Column<Row>[];
  readonly look: string;
  readonly isStop: boolean;
  readonly isCurrent: boolean;
  readonly onFocus: (id: string) => void;
  readonly onOpen: ((row: Row) => void) | undefined;
}

/** Drawn again only when what it shows is another: a table of thousands stays quick while others come and go. */
class TableRow<Row> extends Component<RowProps<Row>> {
  override shouldComponentUpdate(next: RowProps<Row>): boolean {
    const names = Object.keys(next) as (keyof RowProps<Row>)[];
    return names.some((name) => next[name] !== this.props[name]);
  }

  override render({ row, columns, look, isCurrent, ...rest }: RowProps<Row>) {
    return (
      <tr class={isCurrent ? `${look} current` : look}>
        {columns.map(({ head, cell, kind }, i) =>
          i === 0 ? (
            <th key={head} scope="row" data-head={head} class={kind}>
              <Name row={row} isCurrent={isCurrent} {...rest}>
                {cell(row)}
              </Name>
            </th>
          ) : (
            <td key={head} data-head={head} class={kind}>
              <div>{cell(row)}</div>
            </td>
          ),
        )}
      </tr>
    );
  }
}

type NameProps<Row> = Omit<RowProps<Row>, "columns" | "look"> & { readonly children: ComponentChildren };

function Name<Row>({ row, id, isStop, isCurrent, onFocus, onOpen, children }: NameProps<Row>) {
  if (onOpen === undefined) return <div>{children}</div>;
  return (
    <button
      type="button"
      class="row-name"
      tabIndex={isStop ? 0 : -1}
      aria-current={isCurrent ? "true" : undefined}
      onFocus={() => onFocus(id)}
      onKeyDown={(event) => {
        if (walk(event.currentTarget, event.key)) event.preventDefault();
      }}
      onClick={() => onOpen(row)}
    >
      {children}
    </button>
  );
}

/** Moves the focus as the key says; whether it was one of ours. */
function walk(from: HTMLElement, key: string): boolean {
  const row = from.closest("tr");
  const to = targetRow(row, key);
  if (to === undefined) return false;
  to?.querySelector<HTMLElement>(".row-name")?.focus();
  return true;
}

function targetRow(row: Element | null, key: string): Element | null | undefined {
  switch (key) {
    case "ArrowDown":
    case "j":
      return row?.nextElementSibling ?? null;
    case "ArrowUp":
    case "k":
      return row?.previousElementSibling ?? null;
    case "Home":
      return row?.parentElement?.firstElementChild ?? null;
    case "End":
      return row?.parentElement?.lastElementChild ?? null;
    default:
      return undefined;
  }
}

/** Goes to the next row (1) or the one before (-1) of the page's first table; from elsewhere to its tab stop. */
export function focusRow(by: 1 | -1): void {
  const names = [...document.querySelectorAll<HTMLElement>(".row-name")];
  const at = names.findIndex((name) => name.matches(":focus"));
  const current = names.findIndex((name) => name.getAttribute("aria-current") === "true");
  if (at >= 0) names[at + by]?.focus();
  else if (current >= 0) (names[current + by] ?? names[current])?.focus();
  else names.find(({ tabIndex }) => tabIndex === 0)?.focus();
}
