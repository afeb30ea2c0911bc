// A folder of the storage as a list, for places that have no file browser of their own.

import * as React from 'react';

import { Debouncer, Polled, useModel } from '../data/store';
import { IHost, ITransport, useHost } from '../host';
import { IconButton, TextButton } from '../kit/button';
import { ask, showError } from '../kit/dialog';
import { Icon } from '../kit/icon';
import { IEntry, openMenu } from '../kit/menu';
import { LocalTime } from '../kit/time';
import { askReplace, IItem, IOrder, lastPage, mayDelete, ordered, showFile, showProperties, SHOWN } from './browser';
import { IFileInfo, StorageClient } from './client';
import { chosenFiles, droppedFiles, IChosen } from './dropped';
import { join, nameOf, parentOf, partsOf } from './paths';
import { bytesText } from './quantities';
import { Uploads } from './uploads';
import { reason, UploadsView } from './uploads_view';

/** ms between two looks at a folder that is in view, and after a file has come, as the next may follow at once. */
const REFRESH = 30_000;
const LOOK_AGAIN = 500;

/** A file or folder of the list. */
interface IRow extends IItem {
  readonly path: string;
  readonly isFolder: boolean;
}

/** What is in a folder; `marked`: the name of the file that was asked for. */
interface IListing {
  readonly folder: string;
  readonly rows: readonly IRow[];
  readonly marked: string;
}

/** What the list of a person works with, on whichever page it is shown. */
interface IStorage {
  readonly client: StorageClient;
  readonly uploads: Uploads;
}

/** By how the server is reached: uploads go on while something else is shown. */
const storages = new WeakMap<ITransport, IStorage>();

function storageOf(host: IHost): IStorage {
  let storage = storages.get(host.transport);
  if (!storage) {
    const client = new StorageClient(host.transport, host.trans);
    const uploads = new Uploads(client, paths => askReplace(host, paths));
    window.addEventListener('beforeunload', event => {
      if (uploads.active) {
        event.preventDefault();
      }
    });
    storage = { client, uploads };
    storages.set(host.transport, storage);
  }
  return storage;
}

interface IStorageListProps {
  /** A folder, or a file, which is marked in its folder; empty: the person's own folder. */
  path: string;
  /** Go to a folder. */
  onOpen: (path: string) => void;
}

export function StorageList({ path, onOpen }: IStorageListProps): React.ReactElement {
  const host = useHost();
  const { client, uploads } = storageOf(host);
  const listing = React.useMemo(() => new Polled(() => listed(client, path), REFRESH), [client, path]);
  React.useEffect(() => () => listing.dispose(), [listing]);
  useModel(listing);
  const look = () => void listing.refresh();
  React.useEffect(() => {
    const looking = new Debouncer(() => listing.refresh(), LOOK_AGAIN);
    const deaf = uploads.arrived.connect(arrived => {
      const folder = listing.answer?.folder;
      // of a folder that came with files in it, only the uppermost is seen here
      if (folder !== undefined && arrived.startsWith(folder === '/' ? '/' : `${folder}/`)) {
        looking.invoke();
      }
    });
    return () => {
      deaf();
      looking.dispose();
    };
  }, [listing, uploads]);
  const shown = listing.answer;
  const folder = shown?.folder ?? (path === '' ? null : join(path));
  const upload = (chosen: IChosen | Promise<IChosen>) => {
    if (folder !== null) {
      void send(host, uploads, chosen, folder);
    }
  };
  const onFiles = (event: React.DragEvent) => {
    if (event.dataTransfer.types.includes('Files')) {
      event.preventDefault();
      event.stopPropagation();
      if (event.type === 'drop') {
        upload(droppedFiles(event.dataTransfer));
      }
    }
  };
  return (
    <div className="pai-StorageList" onDragOver={onFiles} onDrop={onFiles}>
      <Head {...{ folder, client, upload, look, onOpen }} />
      {listing.error && (
        <p role="alert" className="pai-Storage-error">
          {host.trans.__('This folder cannot be shown: %1', listing.error)}
        </p>
      )}
      {shown ? (
        <Rows key={shown.folder} {...{ ...shown, client, look, onOpen }} />
      ) : (
        !listing.error && <p role="status">{host.trans.__('One moment …')}</p>
      )}
      <UploadsView uploads={uploads} />
    </div>
  );
}

/** List a folder, or that of a file. */
async function listed(client: StorageClient, path: string): Promise<IListing> {
  const folder = path === '' ? await client.home() : join(path);
  const entries = await client.entries(folder);
  // (a file is listed as itself)
  return entries[0]?.path === folder
    ? { folder: parentOf(folder), rows: (await client.entries(parentOf(folder))).map(rowOf), marked: nameOf(folder) }
    : { folder, rows: entries.map(rowOf), marked: '' };
}

function rowOf({ path, isFolder, length, modified }: IFileInfo): IRow {
  return {
    path,
    isFolder,
    name: nameOf(path),
    type: isFolder ? 'directory' : 'file',
    last_modified: new Date(modified).toISOString(),
    ...(isFolder ? {} : { size: length })
  };
}

async function send(host: IHost, uploads: Uploads, chosen: IChosen | Promise<IChosen>, folder: string): Promise<void> {
  try {
    await uploads.add(await chosen, folder);
  } catch (error) {
    await showError(host, host.trans.__('Nothing was uploaded'), reason(error, host.trans));
  }
}

/** Where one is, and what can be done with the folder. */
function Head(props: {
  folder: string | null;
  client: StorageClient;
  upload: (chosen: IChosen) => void;
  look: () => void;
  onOpen: (path: string) => void;
}): React.ReactElement {
  const { folder, client, upload, look, onOpen } = props;
  const host = useHost();
  const { trans } = host;
  const parts = partsOf(folder ?? '');
  const disabled = folder === null;
  const make = async () => {
    const title = trans.__('New folder');
    const name = await ask(host, { title, label: trans.__('Name'), value: '', accept: trans.__('Create') });
    if (name !== null && folder !== null) {
      try {
        await client.mkdirs(await free(host, client, folder, name));
      } catch (error) {
        await showError(host, trans.__('The folder was not created'), error);
      }
      look();
    }
  };
  const choose = (isFolder: boolean) => {
    const input = document.createElement('input');
    input.type = 'file';
    input.multiple = true;
    input.webkitdirectory = isFolder;
    input.onchange = () => upload(chosenFiles(input.files ?? []));
    input.click();
  };
  return (
    <div className="pai-StorageHead">
      <nav aria-label={trans.__('Path')}>
        <Crumb path="/" name={trans.__('PAI storage')} isLast={folder === '/'} onOpen={onOpen} />
        {parts.map((name, index) => (
          <Crumb
            key={index}
            path={join(...(parts.slice(0, index + 1) as [string]))}
            {...{ name, onOpen }}
            isLast={index === parts.length - 1}
          />
        ))}
      </nav>
      <TextButton icon="upload" disabled={disabled} onClick={() => choose(false)}>
        {trans.__('Upload files')}
      </TextButton>
      <TextButton icon="upload" disabled={disabled} onClick={() => choose(true)}>
        {trans.__('Upload a folder')}
      </TextButton>
      <TextButton icon="add" disabled={disabled} onClick={() => void make()}>
        {trans.__('New folder')}
      </TextButton>
      <IconButton icon="refresh" label={trans.__('Refresh')} onClick={look} />
    </div>
  );
}

/** A folder above, or the one that is shown. */
function Crumb(props: {
  path: string;
  name: string;
  isLast: boolean;
  onOpen: (path: string) => void;
}): React.ReactElement {
  const { path, name, isLast, onOpen } = props;
  return isLast ? (
    <strong aria-current="location">{name}</strong>
  ) : (
    <>
      <Way path={path} onOpen={onOpen}>
        {name}
      </Way>
      <span aria-hidden="true">/</span>
    </>
  );
}

/** A link to a folder, where it has an address. */
function Way(props: { path: string; onOpen: (path: string) => void; children: React.ReactNode }): React.ReactElement {
  const { path, onOpen, children } = props;
  const address = useHost().places.href({ page: 'storage', path });
  return address === null ? (
    <button type="button" className="pai-LinkButton" onClick={() => onOpen(path)}>
      {children}
    </button>
  ) : (
    <a
      href={address}
      onClick={event => {
        // (a new tab is the browser's own business)
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
          event.preventDefault();
          onOpen(path);
        }
      }}
    >
      {children}
    </a>
  );
}

interface IRowsProps extends IListing {
  client: StorageClient;
  /** Look at the folder again. */
  look: () => void;
  onOpen: (path: string) => void;
}

/** The names of the columns, as a listing is ordered by them. */
const COLUMNS = ['name', 'file_size', 'last_modified'] as const;

function Rows(props: IRowsProps): React.ReactElement {
  const { rows, marked, client, look, onOpen } = props;
  const host = useHost();
  const { trans, language } = host;
  const [words, setWords] = React.useState('');
  const [order, setOrder] = React.useState<IOrder>({ key: 'name', direction: 'ascending' });
  const [turned, setTurned] = React.useState<number | null>(null);
  const found = React.useMemo(() => {
    const wanted = words.toLowerCase();
    return ordered(
      rows.filter(({ name }) => name.toLowerCase().includes(wanted)),
      order,
      language
    );
  }, [rows, words, order, language]);
  // (that in which the file is which was asked for, until somebody turns)
  const at = turned ?? Math.floor(Math.max(0, marked === '' ? 0 : found.findIndex(row => row.name === marked)) / SHOWN);
  const page = Math.min(at, lastPage(found.length));
  const shown = found.slice(page * SHOWN, (page + 1) * SHOWN);
  const table = React.useRef<HTMLTableElement>(null);
  React.useEffect(() => {
    table.current?.querySelector('tr[aria-current]')?.scrollIntoView({ block: 'center' });
  }, [marked]);
  const actions = new Actions(host, client, look);
  const titles = { name: trans.__('Name'), file_size: trans.__('Size'), last_modified: trans.__('Changed') };
  const turn = (key: (typeof COLUMNS)[number]) => {
    const isSame = order.key === key;
    setOrder({ key, direction: isSame && order.direction === 'ascending' ? 'descending' : 'ascending' });
  };
  if (rows.length === 0) {
    return <p role="status">{trans.__('Nothing is here yet. Drop files or folders to upload them.')}</p>;
  }
  return (
    <>
      <input
        className="pai-Input"
        type="search"
        aria-label={trans.__('Filter by name')}
        placeholder={trans.__('Filter by name')}
        value={words}
        onChange={({ target }) => setWords(target.value)}
      />
      <div className="pai-StorageRows">
        <table ref={table} aria-label={trans.__('Files')}>
          <thead>
            <tr>
              {COLUMNS.map(key => (
                <th key={key} scope="col" aria-sort={order.key === key ? order.direction : undefined}>
                  <button type="button" className="pai-LinkButton" onClick={() => turn(key)}>
                    {titles[key]}
                  </button>
                </th>
              ))}
              <td />
            </tr>
          </thead>
          <tbody onKeyDown={event => onKey(event, actions, shown)}>
            {shown.map(row => (
              <Row key={row.name} {...{ row, actions, onOpen }} isMarked={row.name === marked} />
            ))}
          </tbody>
        </table>
        {found.length === 0 && <p role="status">{trans.__('No name has “%1” in it.', words)}</p>}
      </div>
      {found.length > SHOWN && (
        <nav className="pai-StorageParts" aria-label={trans.__('Parts of this folder')}>
          <IconButton
            icon="left"
            label={trans.__('Those before')}
            disabled={page === 0}
            onClick={() => setTurned(page - 1)}
          />
          <span role="status">
            {trans.__(
              '%1–%2 of %3',
              ...[page * SHOWN + 1, page * SHOWN + shown.length, found.length].map(one => one.toLocaleString(language))
            )}
          </span>
          <IconButton
            icon="right"
            label={trans.__('Those after')}
            disabled={page === lastPage(found.length)}
            onClick={() => setTurned(page + 1)}
          />
        </nav>
      )}
    </>
  );
}

/** Go to another row, or do something with this one. */
function onKey(event: React.KeyboardEvent<HTMLElement>, actions: Actions, rows: readonly IRow[]): void {
  const names = [...event.currentTarget.querySelectorAll<HTMLElement>('th > *')];
  const at = names.findIndex(name => name.closest('tr')!.contains(event.target as Node));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: names.length - 1 }[event.key];
  const row = rows[at];
  if (to !== undefined) {
    names[to]?.focus();
  } else if (event.key === 'F2' && row) {
    void actions.rename(row);
  } else if (event.key === 'Delete' && row) {
    void actions.remove(row);
  } else {
    return;
  }
  event.preventDefault();
}

function Row(props: {
  row: IRow;
  actions: Actions;
  isMarked: boolean;
  onOpen: (path: string) => void;
}): React.ReactElement {
  const { row, actions, isMarked, onOpen } = props;
  const { root, trans, language } = useHost();
  const menu = (x: number, y: number) => openMenu(actions.entries(row, onOpen), x, y, root);
  return (
    <tr
      aria-current={isMarked || undefined}
      onContextMenu={event => {
        event.preventDefault();
        menu(event.clientX, event.clientY);
      }}
    >
      <th scope="row">
        {row.isFolder ? (
          <Way path={row.path} onOpen={onOpen}>
            <Icon sign="folder" /> {row.name}
          </Way>
        ) : (
          <button type="button" className="pai-LinkButton" onClick={() => void actions.show(row)}>
            {row.name}
          </button>
        )}
      </th>
      <td>{row.isFolder ? '' : bytesText(row.size ?? 0)}</td>
      <td>
        <LocalTime time={new Date(row.last_modified)} language={language} form="minutes" />
      </td>
      <td>
        <IconButton
          icon="more"
          label={trans.__('What can be done with “%1”', row.name)}
          aria-haspopup="menu"
          onClick={({ currentTarget }) => {
            const { left, bottom } = currentTarget.getBoundingClientRect();
            menu(left, bottom);
          }}
        />
      </td>
    </tr>
  );
}

/** What can be done with a file or folder. */
class Actions {
  constructor(
    private readonly host: IHost,
    private readonly client: StorageClient,
    private readonly look: () => void
  ) {}

  entries(row: IRow, onOpen: (path: string) => void): IEntry[][] {
    const { trans } = this.host;
    const open = () => (row.isFolder ? onOpen(row.path) : void this.show(row));
    return [
      [
        { label: trans.__('Open'), icon: 'open', act: open },
        {
          label: row.isFolder ? trans.__('Download as a zip file') : trans.__('Download'),
          icon: 'download',
          act: () => this.download(row)
        }
      ],
      [
        { label: trans.__('Rename …'), icon: 'edit', act: () => void this.rename(row) },
        { label: trans.__('Delete …'), icon: 'delete', act: () => void this.remove(row) }
      ],
      [
        {
          label: trans.__('Properties'),
          icon: 'info',
          act: () => void showProperties(this.host, row, row.path, this.client)
        }
      ]
    ];
  }

  show(row: IRow): Promise<void> {
    return showFile(this.host, row, row.path, this.client);
  }

  async rename(row: IRow): Promise<void> {
    const { host, client } = this;
    const { trans } = host;
    const title = trans.__('Rename “%1”', row.name);
    const name = await ask(host, { title, label: trans.__('Name'), value: row.name, accept: trans.__('Rename') });
    if (name !== null && name !== row.name) {
      try {
        await client.rename(row.path, await free(host, client, parentOf(row.path), name), false);
      } catch (error) {
        await showError(host, trans.__('“%1” was not renamed', row.name), error);
      }
      this.look();
    }
  }

  async remove(row: IRow): Promise<void> {
    const { host, client } = this;
    if (await mayDelete(host, [row], ({ path }) => client.summary(path))) {
      try {
        await client.remove(row.path);
      } catch (error) {
        await showError(host, host.trans.__('“%1” was not deleted', row.name), error);
      }
      this.look();
    }
  }

  private download(row: IRow): void {
    const link = document.createElement('a');
    link.href = this.client.downloadUrl(row.path, row.isFolder);
    link.download = '';
    link.click();
  }
}

/** Return the path of a name in a folder; it fails where there is such a thing already, or can be none. */
async function free({ trans }: IHost, client: StorageClient, folder: string, name: string): Promise<string> {
  if (name.includes('/') || name === '.' || name === '..') {
    throw new Error(trans.__('“%1” cannot be a name: leave out “/”, and take more than dots.', name));
  }
  const path = join(folder, name);
  if ((await client.find(path)) !== null) {
    throw new Error(trans.__('“%1” is already there: choose another name.', name));
  }
  return path;
}
