// What is shown of a folder, and what is asked and told of its files: before deleting, before replacing, properties.

import * as React from 'react';

import { messageOf } from '../data/errors';
import { IHost } from '../host';
import { choose, confirm, showError } from '../kit/dialog';
import { LocalTime } from '../kit/time';
import { ISummary, StorageClient } from './client';
import { fullUri, nameOf, variableUri } from './paths';
import { bytesText, LARGEST_OPENED } from './quantities';
import { Conflict } from './uploads';

/** A file or folder; JupyterLab's models of contents are such. */
export interface IItem {
  readonly name: string;
  /** "directory", or what kind of file it is. */
  readonly type: string;
  readonly size?: number;
  /** As ISO 8601 writes it, in UTC. */
  readonly last_modified: string;
}

type Stage = Pick<IHost, 'root' | 'trans'>;

/** Bytes that are shown of a text that is not opened. */
export const BEGINNING = 64 * 1024;

/** Files and folders that are shown at a time: a browser that shows ten thousand of them at once stands still. */
export const SHOWN = 400;
/** Names that a question lists; of more it tells how many. */
const NAMED = 5;

/** By what a listing is ordered, as JupyterLab's has it. */
export interface IOrder {
  readonly key: string;
  readonly direction: 'ascending' | 'descending';
}

/** Return items in the order in which JupyterLab shows them: folders first. */
export function ordered<Item extends IItem>(items: readonly Item[], order: IOrder, language: string): Item[] {
  const collator = new Intl.Collator(language, { numeric: true, sensitivity: 'base' });
  const sign = order.direction === 'descending' ? 1 : -1;
  const compare = comparison(order.key);
  const decorated = items.map(item => ({ item, folder: isFolder(item) ? 0 : 1 }));
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

function comparison(key: string): ((a: IItem, b: IItem) => number) | null {
  if (key === 'last_modified' || key === 'date_created') {
    // ISO dates, all in UTC, are in the order of their letters
    return (a, b) => (a.last_modified < b.last_modified ? -1 : a.last_modified > b.last_modified ? 1 : 0);
  }
  return key === 'file_size' ? (a, b) => (b.size ?? 0) - (a.size ?? 0) : null;
}

function isFolder(item: IItem): boolean {
  return item.type === 'directory';
}

/** Ask before something is deleted for good; how much folders hold comes when it is counted. */
export async function mayDelete<Item extends IItem>(
  host: Stage,
  items: readonly Item[],
  count: (folder: Item) => Promise<ISummary>
): Promise<boolean> {
  const { trans } = host;
  const [first] = items;
  const folders = items.filter(isFolder);
  const text =
    items.length > 1
      ? folders.length > 0
        ? trans.__('%1 files and folders are deleted, with everything in them. This cannot be undone.', items.length)
        : trans.__('%1 files are deleted. This cannot be undone.', items.length)
      : folders.length > 0
        ? trans.__('The folder “%1” is deleted, with everything in it. This cannot be undone.', first!.name)
        : trans.__('“%1” is deleted. This cannot be undone.', first!.name);
  const counted = Promise.all(folders.map(count)).then(
    summaries => {
      const files = summaries.reduce((sum, one) => sum + one.files, items.length - folders.length);
      const sizes = [
        ...summaries.map(({ length }) => length),
        ...items.map(item => (isFolder(item) ? 0 : (item.size ?? 0)))
      ];
      return trans.__('Files: %1, %2.', files, bytesText(sizes.reduce((sum, size) => sum + size, 0)));
    },
    () => '' // deleting it will say why
  );
  return confirm(host, {
    title: trans.__('Delete from the storage?'),
    text,
    more: folders.length > 0 && <Later text={counted} />,
    accept: trans.__('Delete'),
    warn: true,
    careful: true
  });
}

function Later({ text }: { text: Promise<string> }): React.ReactElement {
  return <p>{useLater(text) ?? ''}</p>;
}

/** Return what a promise comes to, once it has; `null` until then. */
function useLater<Value>(promise: Promise<Value>): Value | null {
  const [value, setValue] = React.useState<Value | null>(null);
  React.useEffect(() => {
    let wanted = true;
    void promise.then(come => wanted && setValue(come));
    return () => {
      wanted = false;
    };
  }, [promise]);
  return value;
}

/** Return whether to open a file; of one that is too large, its beginning or a download is offered instead. */
export function mayOpen(
  { root, trans }: Stage,
  { name, size = 0 }: IItem,
  download: () => Promise<void>,
  beginning: () => Promise<void>
): boolean {
  if (size <= LARGEST_OPENED) {
    return true;
  }
  const text = trans.__(
    '“%1” has %2. At most %3 are opened in the browser: download it instead.',
    name,
    bytesText(size),
    bytesText(LARGEST_OPENED)
  );
  void choose(root, trans.__('Too large to open'), <p>{text}</p>, [
    { label: trans.__('Cancel'), answer: null },
    { label: trans.__('Show its beginning'), answer: beginning },
    { label: trans.__('Download'), answer: download, kind: 'accept' }
  ]).then(act => act?.());
  return false;
}

/** Show what a large file begins with; `isWhole`: that is all of it. */
export async function showBeginning(
  host: Stage,
  name: string,
  bytes: Promise<Uint8Array>,
  isWhole = false
): Promise<void> {
  const { trans } = host;
  try {
    // the last character may be cut
    const head = new TextDecoder().decode(await bytes, { stream: true });
    const text = head.includes('\0') ? trans.__('“%1” is not text in UTF-8: download it instead.', name) : head;
    await show(
      host,
      isWhole ? name : trans.__('The beginning of “%1”', name),
      <p className="pai-Storage-beginning" tabIndex={0}>
        {text}
      </p>
    );
  } catch (error) {
    await showError(host, trans.__('“%1” cannot be shown', name), error);
  }
}

/** What browsers show as images, by the ends of names; those that are text are shown without what runs in them. */
const IMAGES: Readonly<Record<string, string>> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  png: 'image/png',
  svg: 'image/svg+xml',
  webp: 'image/webp'
};
/** Bytes of the largest image that is shown. */
const LARGEST_SHOWN = 5 * 1024 * 1024;

/** Show a small image, or a text, or what that begins with. */
export async function showFile(
  host: Stage,
  { name, size = 0 }: IItem,
  path: string,
  client: StorageClient
): Promise<void> {
  const type = IMAGES[name.toLowerCase().replace(/^.*\./, '')];
  if (type === undefined || size > LARGEST_SHOWN) {
    await showBeginning(host, name, client.read(path, BEGINNING), size <= BEGINNING);
    return;
  }
  try {
    const source = await dataAddress(new Blob([await client.read(path)], { type }));
    await show(host, name, <img className="pai-Storage-image" src={source} alt={name} />);
  } catch (error) {
    await showError(host, host.trans.__('“%1” cannot be shown', name), error);
  }
}

/** Return an address that has the contents in itself. */
function dataAddress(contents: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error!);
    reader.readAsDataURL(contents);
  });
}

/** Ask what is to become of files that are there and differ from those to be uploaded. */
export async function askReplace({ root, trans }: Stage, paths: readonly string[]): Promise<Conflict> {
  const names = paths.slice(0, NAMED).map(nameOf).join(', ');
  const text =
    paths.length > NAMED
      ? trans.__('These files are there already and differ: %1 and %2 more.', names, paths.length - NAMED)
      : trans.__('These files are there already and differ: %1.', names);
  return choose<Conflict>(
    root,
    trans.__('Replace files?'),
    <p>{text}</p>,
    [
      { label: trans.__('Cancel'), answer: null },
      { label: trans.__('Keep those'), answer: 'keep' },
      { label: trans.__('Replace'), answer: 'replace', kind: 'warn' }
    ],
    0
  );
}

/** Show what there is to know of a file or folder; how much a folder holds comes when it is counted. */
export async function showProperties(
  host: Pick<IHost, 'root' | 'trans' | 'language' | 'facts'>,
  item: IItem,
  path: string,
  client: StorageClient
): Promise<void> {
  const { trans } = host;
  const counted = isFolder(item)
    ? client.summary(path).then(
        ({ files, folders, length }) => ({
          size: bytesText(length),
          holds: trans.__('%1 (files), %2 (folders)', files, Math.max(0, folders - 1))
        }),
        (error: unknown) => ({ size: messageOf(error), holds: '' })
      )
    : Promise.resolve({ size: bytesText(item.size ?? 0), holds: '' });
  const Properties = () => {
    const known = useLater(counted);
    const rows: [string, React.ReactNode][] = [
      [trans.__('Path'), path],
      [trans.__('In a job'), variableUri(path)],
      [trans.__('URI'), fullUri(path, host.facts.storageRoot)],
      [trans.__('Size'), known?.size ?? trans.__('being counted …')],
      [trans.__('Holds'), known?.holds],
      [trans.__('Changed'), <LocalTime time={new Date(item.last_modified)} language={host.language} form="seconds" />]
    ];
    return (
      <dl className="pai-Properties">
        {rows
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <React.Fragment key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </React.Fragment>
          ))}
      </dl>
    );
  };
  await show(host, trans.__('Properties of “%1”', item.name || '/'), <Properties />);
}

/** Show something until it is closed. */
async function show({ root, trans }: Stage, title: string, content: React.ReactElement): Promise<void> {
  await choose(root, title, content, [{ label: trans.__('Close'), answer: null, kind: 'accept' }]);
}
