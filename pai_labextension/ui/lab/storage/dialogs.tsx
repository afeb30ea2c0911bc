// What the browser of the storage asks and tells: before deleting, before replacing, properties.

import { Dialog, ReactWidget, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { Contents } from '@jupyterlab/services';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { ITranslation } from '../../console/host';
import { LocalTime } from '../../console/kit/time';
import { LARGEST_OPENED } from './contents';
import { ISummary, StorageClient } from '../../console/storage/client';
import { fullUri, nameOf, variableUri } from '../../console/storage/paths';
import { bytesText } from '../../console/storage/quantities';
import { Conflict } from '../../console/storage/uploads';

/** Names that a question lists; of more it tells how many. */
const NAMED = 5;

/** Ask before something is deleted for good; how much folders hold comes when it is counted. */
export async function mayDelete(
  items: readonly Contents.IModel[],
  count: (folder: Contents.IModel) => Promise<ISummary>,
  trans: ITranslation
): Promise<boolean> {
  const [first] = items;
  const folders = items.filter(item => item.type === 'directory');
  const question =
    items.length > 1
      ? folders.length > 0
        ? trans.__('%1 files and folders are deleted, with everything in them. This cannot be undone.', items.length)
        : trans.__('%1 files are deleted. This cannot be undone.', items.length)
      : folders.length > 0
        ? trans.__('The folder “%1” is deleted, with everything in it. This cannot be undone.', first!.name)
        : trans.__('“%1” is deleted. This cannot be undone.', first!.name);
  const body = text(question);
  if (folders.length > 0) {
    Promise.all(folders.map(count)).then(
      summaries => {
        const files = summaries.reduce((sum, one) => sum + one.files, items.length - folders.length);
        const length = [...items, ...summaries].reduce((sum, one) => sum + sizeOf(one), 0);
        body.node.append(' ', trans.__('Files: %1, %2.', files, bytesText(length)));
      },
      () => undefined // deleting it will say why
    );
  }
  const answer = await showDialog({
    title: trans.__('Delete from the storage?'),
    body,
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label: trans.__('Delete') })],
    defaultButton: 0
  });
  return answer.button.accept;
}

/** Return whether to open a file; of one that is too large, its beginning or a download is offered instead. */
export function mayOpen(
  item: Contents.IModel,
  trans: ITranslation,
  download: () => Promise<void>,
  beginning: () => Promise<void>
): boolean {
  const size = item.size ?? 0;
  if (size <= LARGEST_OPENED) {
    return true;
  }
  void showDialog({
    title: trans.__('Too large to open'),
    body: trans.__(
      '“%1” has %2. At most %3 are opened in the browser: download it instead.',
      item.name,
      bytesText(size),
      bytesText(LARGEST_OPENED)
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.createButton({ label: trans.__('Show its beginning'), actions: ['beginning'], accept: true }),
      Dialog.okButton({ label: trans.__('Download') })
    ]
  }).then(({ button }) => {
    if (button.accept) {
      return button.actions.includes('beginning') ? beginning() : download();
    }
    return undefined;
  });
  return false;
}

/** Show what a large file begins with. */
export async function showBeginning(name: string, bytes: Promise<Uint8Array>, trans: ITranslation): Promise<void> {
  try {
    // the last character may be cut
    const head = new TextDecoder().decode(await bytes, { stream: true });
    const body = text(head.includes('\0') ? trans.__('“%1” is not text in UTF-8: download it instead.', name) : head);
    body.addClass('pai-Storage-beginning');
    await showDialog({
      title: trans.__('The beginning of “%1”', name),
      body,
      buttons: [Dialog.okButton({ label: trans.__('Close') })]
    });
  } catch (error) {
    await showErrorMessage(trans.__('“%1” cannot be shown', name), error as Error);
  }
}

function text(content: string): Widget {
  const node = document.createElement('p');
  node.textContent = content;
  return new Widget({ node });
}

function sizeOf(item: Contents.IModel | ISummary): number {
  return 'length' in item ? item.length : item.type === 'directory' ? 0 : (item.size ?? 0);
}

/** Ask what is to become of files that are there and differ from those to be uploaded. */
export async function askReplace(paths: readonly string[], trans: ITranslation): Promise<Conflict> {
  const names = paths.slice(0, NAMED).map(nameOf).join(', ');
  const answer = await showDialog({
    title: trans.__('Replace files?'),
    body:
      paths.length > NAMED
        ? trans.__('These files are there already and differ: %1 and %2 more.', names, paths.length - NAMED)
        : trans.__('These files are there already and differ: %1.', names),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.createButton({ label: trans.__('Keep those'), actions: ['keep'], accept: true }),
      Dialog.warnButton({ label: trans.__('Replace') })
    ],
    defaultButton: 0
  });
  return !answer.button.accept ? null : answer.button.actions.includes('keep') ? 'keep' : 'replace';
}

/** Show what there is to know of a file or folder; how much a folder holds comes when it is counted. */
export async function showProperties(
  item: Contents.IModel,
  path: string,
  root: string,
  client: StorageClient,
  trans: ITranslation,
  language: string
): Promise<void> {
  const counted = item.type === 'directory' ? client.summary(path) : null;
  await showDialog({
    title: trans.__('Properties of “%1”', item.name || '/'),
    body: new PropertiesView(item, path, root, counted, trans, language),
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}

class PropertiesView extends ReactWidget {
  constructor(
    private readonly item: Contents.IModel,
    private readonly path: string,
    private readonly root: string,
    counted: Promise<ISummary> | null,
    private readonly trans: ITranslation,
    private readonly language: string
  ) {
    super();
    this.addClass('pai-Properties');
    counted
      ?.then(summary => {
        const { files, folders, length } = summary;
        this.size = bytesText(length);
        this.holds = trans.__('%1 (files), %2 (folders)', files, Math.max(0, folders - 1));
      })
      .catch((error: Error) => {
        this.size = error.message;
      })
      .finally(() => this.update());
  }

  protected render(): React.ReactElement {
    const { item, path, root, trans } = this;
    const isFolder = item.type === 'directory';
    const rows: [string, React.ReactNode][] = [
      [trans.__('Path'), path],
      [trans.__('In a job'), variableUri(path)],
      [trans.__('URI'), fullUri(path, root)],
      [trans.__('Size'), isFolder ? this.size || trans.__('being counted …') : bytesText(item.size ?? 0)],
      ...(isFolder && this.holds ? [[trans.__('Holds'), this.holds] as [string, React.ReactNode]] : []),
      [trans.__('Changed'), <LocalTime time={new Date(item.last_modified)} language={this.language} form="seconds" />]
    ];
    return (
      <dl>
        {rows.map(([name, value]) => (
          <React.Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </React.Fragment>
        ))}
      </dl>
    );
  }

  private size = '';
  private holds = '';
}
