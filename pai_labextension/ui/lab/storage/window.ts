// Which part of a folder is shown: a browser that shows ten thousand files at once stands still.

import { Contents } from '@jupyterlab/services';

/** Files and folders that are shown at a time. */
export const SHOWN = 400;

/** By what a listing is ordered, as JupyterLab's has it. */
export interface IOrder {
  readonly key: string;
  readonly direction: 'ascending' | 'descending';
}

/** Return items in the order in which JupyterLab shows them: folders first. */
export function ordered(items: readonly Contents.IModel[], order: IOrder, language: string): Contents.IModel[] {
  const collator = new Intl.Collator(language, { numeric: true, sensitivity: 'base' });
  const sign = order.direction === 'descending' ? 1 : -1;
  const compare = comparison(order.key);
  const decorated = items.map(item => ({ item, folder: item.type === 'directory' ? 0 : 1 }));
  decorated.sort((a, b) => {
    if (a.folder !== b.folder) {
      return a.folder - b.folder;
    }
    const byName = collator.compare(a.item.name, b.item.name);
    return (compare === null ? -byName : compare(a.item, b.item)) * sign || byName;
  });
  return decorated.map(({ item }) => item);
}

/** A part of so many, counted from 0: at least one, and never beyond the last. */
export function lastPage(total: number): number {
  return Math.max(0, Math.ceil(total / SHOWN) - 1);
}

function comparison(key: string): ((a: Contents.IModel, b: Contents.IModel) => number) | null {
  if (key === 'last_modified' || key === 'date_created') {
    // ISO dates, all in UTC, are in the order of their letters
    return (a, b) => (a.last_modified < b.last_modified ? -1 : a.last_modified > b.last_modified ? 1 : 0);
  }
  return key === 'file_size' ? (a, b) => (b.size ?? 0) - (a.size ?? 0) : null;
}
