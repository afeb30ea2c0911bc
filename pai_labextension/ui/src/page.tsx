// What pages have in common: an error above what is shown, and the titles of a table's columns.

import * as React from 'react';

/** Shows what went wrong last; nothing where nothing did. */
export function PageError({ text }: { text: string | null }): React.ReactElement | null {
  return text ? (
    <p role="alert" className="pai-Page-error">
      {text}
    </p>
  ) : null;
}

/** A column's title, and what stands in it: the last two kinds have a title for screen readers only. */
export type Column = readonly [title: string, kind?: 'number' | 'reason' | 'buttons'];

const CLASSES = { number: 'pai-mod-number', reason: 'pai-Table-reason', buttons: undefined };

/** Shows the titles of a table's columns. */
export function ColumnTitles({ columns }: { columns: readonly Column[] }): React.ReactElement {
  return (
    <thead>
      <tr>
        {columns.map(([title, kind]) => (
          <th key={title} scope="col" className={kind && CLASSES[kind]}>
            {kind && kind !== 'number' ? <span className="jp-sr-only">{title}</span> : title}
          </th>
        ))}
      </tr>
    </thead>
  );
}
