// Which rows of a list are chosen, by their keys.

/** `anchor` is where a range begins that is chosen with Shift. */
export interface ISelection {
  readonly chosen: ReadonlySet<string>;
  readonly anchor: string | null;
}

export const NOTHING: ISelection = { chosen: new Set(), anchor: null };

/** Choose a row, or give it up. */
export function toggled({ chosen }: ISelection, row: string): ISelection {
  const others = new Set(chosen);
  if (!others.delete(row)) {
    others.add(row);
  }
  return { chosen: others, anchor: row };
}

/** Choose all rows from the anchor to a row, besides those that are chosen; `rows` are all, in order. */
export function extended({ chosen, anchor }: ISelection, rows: readonly string[], row: string): ISelection {
  const to = rows.indexOf(row);
  const from = anchor === null ? -1 : rows.indexOf(anchor);
  const [first, last] = from === -1 ? [to, to] : [Math.min(from, to), Math.max(from, to)];
  return { chosen: new Set([...chosen, ...rows.slice(first, last + 1)]), anchor: from === -1 ? row : anchor };
}

/** Choose all of these rows; nothing where they are chosen already. */
export function allOrNone(selection: ISelection, rows: readonly string[]): ISelection {
  return isWhole(selection, rows) ? NOTHING : { chosen: new Set(rows), anchor: null };
}

/** Return whether there are rows, and all of them are chosen. */
export function isWhole({ chosen }: ISelection, rows: readonly string[]): boolean {
  return rows.length > 0 && rows.every(row => chosen.has(row));
}
