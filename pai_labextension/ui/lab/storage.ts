// The plugin: the storage as a drive, its browser in the side bar, and what its context menu offers.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Clipboard } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { Contents } from '@jupyterlab/services';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { copyIcon, deleteIcon, downloadIcon, infoIcon } from '@jupyterlab/ui-components';

import { showError } from '../console/kit/dialog';
import { askReplace, showProperties } from '../console/storage/browser';
import { ILabHost } from './host';
import { storageIcon } from './icon';
import { StorageBrowser, StorageModel } from './storageBrowser';
import { StorageClient } from '../console/storage/client';
import { DRIVE, StorageDrive } from './storageDrive';
import { fullUri, join, variableUri } from '../console/storage/paths';
import { Uploads } from '../console/storage/uploads';

const ITEMS = '.pai-Storage .jp-DirListing-item';
const FILES = `${ITEMS}[data-kind="file"]`;
const FOLDERS = `${ITEMS}[data-kind="folder"]`;

namespace CommandIDs {
  export const open = 'pai:open-storage';
  export const remove = 'pai:delete-from-storage';
  export const downloadFolder = 'pai:download-storage-folder';
  export const copyPath = 'pai:copy-storage-path';
  export const copyVariable = 'pai:copy-storage-variable';
  export const copyUri = 'pai:copy-storage-uri';
  export const properties = 'pai:storage-properties';
}

export const storagePlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:storage',
  description: 'The cluster’s storage as a drive, with a browser in the side bar.',
  autoStart: true,
  requires: [ILabHost, IDocumentManager, IFileBrowserFactory],
  optional: [ILayoutRestorer, IStateDB, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    host: ILabHost,
    manager: IDocumentManager,
    factory: IFileBrowserFactory,
    restorer: ILayoutRestorer | null,
    state: IStateDB | null,
    someTranslator: ITranslator | null
  ) => {
    const { transport, trans } = host;
    const translator = someTranslator ?? nullTranslator;
    const drive = new StorageDrive(transport, trans);
    app.serviceManager.contents.addDrive(drive);
    const uploads = new Uploads(new StorageClient(transport, trans), paths => askReplace(host, paths));
    window.addEventListener('beforeunload', event => {
      if (uploads.active) {
        event.preventDefault();
      }
    });
    let browser: StorageBrowser | null = null;
    const inView = () => browser?.isVisible ?? false;
    const model = new StorageModel({ manager, translator, ...(state ? { state } : {}) }, drive, inView);
    // JupyterLab's own commands (rename, cut, new notebook …) act on the browser that was used last
    const onFirstShow = () => browser && void factory.tracker.add(browser);
    const parts = { model, drive, uploads, host, translator, onFirstShow };
    browser = new StorageBrowser({ id: 'pai-storage', restore: false, ...parts });
    browser.title.icon = storageIcon;
    browser.title.caption = trans.__('PAI storage');
    app.shell.add(browser, 'left', { rank: 110, type: 'PAI storage' });
    restorer?.add(browser, 'pai-storage');
    addCommands(app, browser, drive, host);
  }
};

function addCommands(app: JupyterFrontEnd, browser: StorageBrowser, drive: StorageDrive, host: ILabHost): void {
  const { commands, contextMenu, shell } = app;
  const { trans, facts } = host;
  const noArguments = { describedBy: { args: { type: 'object', properties: {} } } };
  const selected = () => Array.from(browser.selectedItems());
  const path = (item: Contents.IModel) => join(item.path.slice(DRIVE.length + 1));
  const copy = (write: (path: string) => string) => () =>
    Clipboard.copyToSystem(
      selected()
        .map(item => write(path(item)))
        .join('\n')
    );
  commands.addCommand(CommandIDs.open, {
    describedBy: { args: { type: 'object', properties: { path: { type: 'string' } } } },
    label: trans.__('Show the PAI storage'),
    icon: storageIcon,
    execute: async args => {
      shell.activateById(browser.id);
      if (typeof args.path === 'string') {
        try {
          await browser.reveal(args.path);
        } catch (error) {
          await showError(host, trans.__('“%1” cannot be shown', args.path), error);
        }
      }
    }
  });
  // a link of a widget in a notebook (explorer/storage_links.py) leads here, from another page by the address
  const wanted = new URLSearchParams(window.location.search).get('pai-storage');
  if (wanted !== null) {
    void app.restored.then(() => commands.execute(CommandIDs.open, { path: wanted }));
  }
  document.body.addEventListener('click', event => {
    const link = event.target instanceof Element && event.target.closest<HTMLElement>('a[data-pai-storage]');
    if (link && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      void commands.execute(CommandIDs.open, { path: link.dataset.paiStorage! });
    }
  });
  commands.addCommand(CommandIDs.remove, {
    ...noArguments,
    label: trans.__('Delete'),
    icon: deleteIcon.bindprops({ stylesheet: 'menuItem' }),
    execute: () => browser.delete()
  });
  commands.addCommand(CommandIDs.downloadFolder, {
    ...noArguments,
    label: trans.__('Download as a zip file'),
    icon: downloadIcon.bindprops({ stylesheet: 'menuItem' }),
    execute: async () => {
      for (const item of selected()) {
        await browser.model.download(item.path);
      }
    }
  });
  commands.addCommand(CommandIDs.copyPath, {
    ...noArguments,
    label: trans.__('Copy the storage path'),
    icon: copyIcon.bindprops({ stylesheet: 'menuItem' }),
    execute: copy(path => path)
  });
  commands.addCommand(CommandIDs.copyVariable, {
    ...noArguments,
    label: trans.__('Copy as $PAI_DEFAULT_FS_URI/…'),
    icon: copyIcon.bindprops({ stylesheet: 'menuItem' }),
    execute: copy(variableUri)
  });
  commands.addCommand(CommandIDs.copyUri, {
    ...noArguments,
    label: trans.__('Copy the full URI'),
    icon: copyIcon.bindprops({ stylesheet: 'menuItem' }),
    execute: copy(path => fullUri(path, facts.storageRoot))
  });
  commands.addCommand(CommandIDs.properties, {
    ...noArguments,
    label: trans.__('Properties'),
    icon: infoIcon.bindprops({ stylesheet: 'menuItem' }),
    isEnabled: () => selected().length === 1,
    execute: async () => {
      const [item] = selected();
      if (item) {
        try {
          await showProperties(host, item, path(item), drive.client);
        } catch (error) {
          await showError(host, trans.__('The properties could not be shown'), error);
        }
      }
    }
  });
  const menu: [command: string, selector: string, rank: number][] = [
    ['filebrowser:open', ITEMS, 1],
    ['filebrowser:rename', ITEMS, 5],
    [CommandIDs.remove, ITEMS, 6],
    ['filebrowser:cut', ITEMS, 7],
    ['filebrowser:copy', FILES, 8],
    ['filebrowser:duplicate', FILES, 9],
    ['filebrowser:download', FILES, 11],
    [CommandIDs.downloadFolder, FOLDERS, 11],
    [CommandIDs.copyPath, ITEMS, 14.1],
    [CommandIDs.copyVariable, ITEMS, 14.2],
    [CommandIDs.copyUri, ITEMS, 14.3],
    [CommandIDs.properties, ITEMS, 60]
  ];
  menu.forEach(([command, selector, rank]) => contextMenu.addItem({ command, selector, rank }));
  for (const rank of [4, 10, 12, 50]) {
    contextMenu.addItem({ type: 'separator', selector: ITEMS, rank });
  }
}
