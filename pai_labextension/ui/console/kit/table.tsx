// A table whose rows are sorted, found and chosen; where there is no room for columns each row is a card.

import * as React from 'react';

import { useHost } from '../host';
import { IconButton, TextButton } from './button';
import { IEntry, openMenu } from './menu';
import { allOrNone, ISelection, isWhole, NOTHING, toggled } from './selection';

export interface IColumn<Row> {
  readonly title: string;
  readonly cell: (row: Row) => React.ReactNode;
  /** What it is sorted by; absent: it is not. */
  readonly order?: (row: Row) => string | number;
}

interface ITableProps<Row> {
  /** What the rows are. */
  readonly label: string;
  readonly rows: readonly Row[];
  /** The first says what a row is. */
  readonly columns: readonly IColumn<Row>[];
  /** Names a row for good, and to people. */
  readonly keyOf: (row: Row) => string;
  readonly nameOf: (row: Row) => string;
  /** Said where there are no rows. */
  readonly none: string;
  /** What can be done with a row; absent: nothing. */
  readonly actions?: (row: Row) => readonly IEntry[];
  /** What can be done with several; absent: none can be chosen. */
  readonly actionsOfMany?: (rows: readonly Row[]) => readonly IEntry[];
}

/** Beyond so many rows there is a field to look for some, and so many are shown at first. */
const MANY = 8;
const SHOWN = 200;
const texts = new Intl.Collator(undefined, { numeric: true });

export function Table<Row>(props: ITableProps<Row>): React.ReactElement {
  const { label, rows, columns, keyOf, nameOf, none, actions, actionsOfMany } = props;
  const { trans, root } = useHost();
  const [words, setWords] = React.useState('');
  const [sorted, setSorted] = React.useState({ column: 0, down: false });
  const [selection, setSelection] = React.useState<ISelection>(NOTHING);
  const [shown, setShown] = React.useState(SHOWN);
  const found = arranged(rows, columns, words, sorted);
  const keys = found.map(keyOf);
  // (nobody acts on what is not listed any more)
  const chosen = found.filter(row => selection.chosen.has(keyOf(row)));
  if (rows.length === 0) {
    return <p role="status">{none}</p>;
  }
  return (
    <div className="pai-TableBox">
      {(actionsOfMany !== undefined || rows.length > MANY) && (
        <div className="pai-TableBox-bar">
          {actionsOfMany && (
            <label>
              <input
                type="checkbox"
                checked={isWhole(selection, keys)}
                onChange={() => setSelection(allOrNone(selection, keys))}
              />
              {chosen.length > 0 ? trans.__('%1 chosen', chosen.length) : trans.__('Choose all')}
            </label>
          )}
          {chosen.length > 0 &&
            actionsOfMany?.(chosen).map(({ label, icon, act }) => (
              <TextButton key={label} small icon={icon} onClick={act}>
                {label}
              </TextButton>
            ))}
          {rows.length > MANY && (
            <input
              type="search"
              className="pai-Input"
              aria-label={trans.__('Filter: %1', label)}
              placeholder={trans.__('Filter')}
              value={words}
              onChange={({ target }) => setWords(target.value)}
            />
          )}
        </div>
      )}
      {/* (a table that is laid out as cards is none any more for who is read to, unless it says so) */}
      <table role="table" className="pai-Table" aria-label={label}>
        <thead role="rowgroup">
          <tr role="row">
            {actionsOfMany && (
              <td role="cell">
                <span className="pai-mod-unseen">{trans.__('Choose')}</span>
              </td>
            )}
            {columns.map(({ title, order }, column) => {
              const direction = sorted.column === column ? (sorted.down ? 'descending' : 'ascending') : undefined;
              return (
                <th role="columnheader" scope="col" key={title} aria-sort={order && (direction ?? 'none')}>
                  {order ? (
                    <button
                      type="button"
                      className="pai-Table-sort"
                      onClick={() => setSorted({ column, down: direction === 'ascending' })}
                    >
                      {title}
                    </button>
                  ) : (
                    title
                  )}
                </th>
              );
            })}
            {actions && (
              <td role="cell">
                <span className="pai-mod-unseen">{trans.__('Actions')}</span>
              </td>
            )}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {found.slice(0, shown).map(row => (
            <tr role="row" key={keyOf(row)}>
              {actionsOfMany && (
                <td role="cell" className="pai-Table-choose">
                  <input
                    type="checkbox"
                    aria-label={trans.__('Choose “%1”', nameOf(row))}
                    checked={selection.chosen.has(keyOf(row))}
                    onChange={() => setSelection(toggled(selection, keyOf(row)))}
                  />
                </td>
              )}
              {columns.map(({ title, cell }, column) =>
                column === 0 ? (
                  <th role="rowheader" scope="row" key={title}>
                    {cell(row)}
                  </th>
                ) : (
                  <td role="cell" key={title} data-title={title}>
                    {cell(row)}
                  </td>
                )
              )}
              {actions && (
                <td role="cell" className="pai-Table-menu">
                  <IconButton
                    icon="more"
                    label={trans.__('What can be done with “%1”', nameOf(row))}
                    aria-haspopup="menu"
                    onClick={({ currentTarget }) => {
                      const { left, bottom } = currentTarget.getBoundingClientRect();
                      openMenu([actions(row)], left, bottom, root);
                    }}
                  />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {found.length === 0 && <p role="status">{trans.__('Nothing matches the filter.')}</p>}
      {found.length > shown && (
        <TextButton onClick={() => setShown(shown + SHOWN)}>
          {trans.__('Show %1 more', Math.min(SHOWN, found.length - shown))}
        </TextButton>
      )}
    </div>
  );
}

/** Return the rows in which each word stands (in what a column is sorted by), in order. */
export function arranged<Row>(
  rows: readonly Row[],
  columns: readonly IColumn<Row>[],
  words: string,
  { column, down }: { column: number; down: boolean }
): Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter(row => {
    const text = columns
      .map(({ order }) => order?.(row) ?? '')
      .join('\n')
      .toLowerCase();
    return wanted.every(word => text.includes(word));
  });
  const by = columns[column]?.order;
  if (by) {
    found.sort((one, other) => {
      const [a, b] = [by(one), by(other)];
      const order = typeof a === 'number' && typeof b === 'number' ? a - b : texts.compare(String(a), String(b));
      return down ? -order : order;
    });
  }
  return found;
}
