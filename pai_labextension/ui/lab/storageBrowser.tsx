// The browser of the storage: JupyterLab's own, a part of large folders at a time, with our uploads.

import { DirListing, FileBrowser, FilterFileBrowserModel } from '@jupyterlab/filebrowser';
import { Contents } from '@jupyterlab/services';
import {
  fileUploadIcon,
  filterIcon,
  homeIcon,
  LabIcon,
  newFolderIcon,
  refreshIcon,
  ToolbarButton
} from '@jupyterlab/ui-components';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { Debouncer, Signal, useSignal } from '../console/data/store';
import { useHost } from '../console/host';
import { IconButton } from '../console/kit/button';
import { showError } from '../console/kit/dialog';
import {
  BEGINNING,
  IOrder,
  lastPage,
  mayDelete,
  mayOpen,
  ordered,
  showBeginning,
  SHOWN
} from '../console/storage/browser';
import { chosenFiles, droppedFiles, IChosen } from '../console/storage/dropped';
import { join, nameOf, parentOf } from '../console/storage/paths';
import { Uploads } from '../console/storage/uploads';
import { reason, UploadsView } from '../console/storage/uploads_view';
import { ILabHost } from './host';
import { uploadFolderIcon } from './icon';
import { Mount } from './mount';
import { DRIVE, StorageDrive } from './storageDrive';

/** ms after a file has come before the folder is looked at again, as the next may follow at once. */
const LOOK_AGAIN = 500;

interface IBrowserOptions extends FileBrowser.IOptions {
  model: StorageModel;
  drive: StorageDrive;
  uploads: Uploads;
  host: ILabHost;
  /** Called when somebody looks at it for the first time. */
  onFirstShow: () => void;
}

export class StorageBrowser extends FileBrowser {
  constructor(options: IBrowserOptions) {
    super(options);
    const { drive, host, model, uploads } = options;
    const { trans } = host;
    this.options = options;
    this.addClass('pai-Storage');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('PAI storage'));
    // the side bar is narrow: a name is more than a date, which the properties tell
    this.showLastModifiedColumn = false;
    this.showFileSizeColumn = true;
    this.mainPanel.insertWidget(2, new Mount(host, () => <Notice model={model} />));
    const pages = new Mount(host, () => <Pages model={model} onTurn={pages => this.turn(pages)} />);
    pages.addClass('pai-Storage-pages');
    this.mainPanel.addWidget(pages);
    const under = new Mount(host, () => <UploadsView uploads={uploads} />);
    under.addClass('pai-Storage-uploads');
    this.addWidget(under);
    this.toolbar.addItem(
      'home',
      button(homeIcon, trans.__('My own files'), async () => model.cd(await drive.client.home()))
    );
    this.toolbar.addItem(
      'new-folder',
      button(newFolderIcon, trans.__('New folder'), () => this.createNewDirectory())
    );
    this.toolbar.addItem(
      'upload-files',
      button(fileUploadIcon, trans.__('Upload files'), () => this.choose(false))
    );
    this.toolbar.addItem(
      'upload-folder',
      button(uploadFolderIcon, trans.__('Upload a folder'), () => this.choose(true))
    );
    this.toolbar.addItem(
      'refresh',
      button(refreshIcon, trans.__('Refresh'), () => model.refresh())
    );
    this.toolbar.addItem(
      'filter',
      button(filterIcon, trans.__('Filter by name'), () => this.toggleFilter())
    );
    const look = new Debouncer(() => model.refresh(), LOOK_AGAIN);
    uploads.arrived.connect(path => {
      // of a folder that came with files in it, only the uppermost is seen here
      if (`${parentOf(path)}/`.startsWith(model.folder === '/' ? '/' : `${model.folder}/`)) {
        look.invoke();
      }
    });
    this.disposed.connect(() => look.dispose());
    this.begin = () => this.goHome(drive);
  }

  declare readonly model: StorageModel;

  /** Upload into the folder that is shown. */
  async upload(chosen: Promise<IChosen> | IChosen): Promise<void> {
    const { host, uploads, model } = this.options;
    // before that, the folder that is shown is not the one it begins with
    await this.begun;
    const folder = model.folder;
    try {
      await uploads.add(await chosen, folder);
    } catch (error) {
      await showError(host, host.trans.__('Nothing was uploaded'), reason(error, host.trans));
    }
  }

  /** Go to a folder, or to a file in its folder. */
  async reveal(path: string): Promise<void> {
    await this.comeIntoView();
    await this.begun;
    const { isFolder } = await this.options.drive.client.status(path);
    if (!isFolder) {
      this.model.turnTo(nameOf(path));
    }
    await this.model.cd(isFolder ? path : parentOf(path));
    if (!isFolder) {
      await this.model.refresh();
      await this.selectItemByName(nameOf(path));
    }
  }

  protected override createDirListing(options: DirListing.IOptions): DirListing {
    const listing = new StorageListing(options);
    listing.onDrop = data => void this.upload(droppedFiles(data));
    // the options are not there before the listing is
    const pathOf = (item: Contents.IModel) => join(item.path.slice(DRIVE.length + 1));
    const head = (item: Contents.IModel) => this.options.drive.client.read(pathOf(item), BEGINNING);
    listing.mayOpen = item =>
      mayOpen(
        this.options.host,
        item,
        () => this.model.download(item.path),
        () => showBeginning(this.options.host, item.name, head(item))
      );
    listing.mayDelete = items =>
      mayDelete(this.options.host, items, item => this.options.drive.client.summary(pathOf(item)));
    listing.erase = items => this.erase(items);
    return listing;
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    void this.comeIntoView();
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    if (this.isVisible) {
      void this.comeIntoView();
    }
  }

  /** Nothing is asked before somebody looks. */
  private async comeIntoView(): Promise<void> {
    if (this.begin !== null) {
      const begin = this.begin;
      this.begin = null;
      this.options.onFirstShow();
      this.begun = begin();
      await this.begun;
    }
    await this.model.refresh();
  }

  /** A person's first visit begins in their own tree. */
  private async goHome(drive: StorageDrive): Promise<void> {
    await this.model.restore(this.id);
    if (this.model.folder === '/') {
      const home = await drive.client.home().catch(() => '/');
      await this.model.cd(home);
    }
  }

  private async erase(items: readonly Contents.IModel[]): Promise<void> {
    for (const item of items) {
      try {
        await this.model.manager.deleteFile(item.path);
      } catch (error) {
        const { host } = this.options;
        await showError(host, host.trans.__('“%1” was not deleted', item.name), error);
        return;
      }
    }
  }

  private choose(folder: boolean): void {
    const input = document.createElement('input');
    input.type = 'file';
    input.multiple = true;
    input.webkitdirectory = folder;
    input.onchange = () => void this.upload(chosenFiles(input.files ?? []));
    input.click();
  }

  private toggleFilter(): void {
    this.showFileFilter = !this.showFileFilter;
  }

  private turn(pages: -1 | 1): void {
    this.model.turn(pages);
    this.listing.clearSelectedItems();
    this.listing.sort(this.listing.sortState);
    this.listing.contentNode.scrollTop = 0;
  }

  private readonly options: IBrowserOptions;
  private begin: (() => Promise<void>) | null;
  private begun = Promise.resolve();
}

class StorageListing extends DirListing {
  /** Called with what was dropped from outside of the browser. */
  onDrop: (data: DataTransfer) => void = () => undefined;

  /** Asked before a file is opened, and before something is deleted. */
  mayOpen: (item: Contents.IModel) => boolean = () => true;
  mayDelete: (items: readonly Contents.IModel[]) => Promise<boolean> = async () => true;
  /** Deletes without asking again. */
  erase: (items: readonly Contents.IModel[]) => Promise<void> = async () => undefined;

  override sort(state: DirListing.ISortState): void {
    (this.model as StorageModel).setOrder(state);
    super.sort(state);
  }

  /** JupyterLab asks whether to move to the trash, but the storage has none. */
  override async delete(): Promise<void> {
    const items = Array.from(this.selectedItems());
    if (items.length > 0 && (await this.mayDelete(items))) {
      await this.erase(items);
    }
  }

  /** The menu of JupyterLab's own files promises a trash, a terminal and links that there are not: ours has its own. */
  protected override updateNodes(items: Contents.IModel[], nodes: HTMLElement[], sizeOnly?: boolean): void {
    super.updateNodes(items, nodes, sizeOnly);
    if (!sizeOnly) {
      items.forEach((item, index) => {
        nodes[index]!.removeAttribute('data-isdir');
        nodes[index]!.dataset.kind = item.type === 'directory' ? 'folder' : 'file';
      });
    }
  }

  protected override handleOpen(item: Contents.IModel): void {
    if (item.type === 'directory' || this.mayOpen(item)) {
      super.handleOpen(item);
    }
  }

  protected override evtNativeDrop(event: DragEvent): void {
    event.preventDefault();
    if (event.dataTransfer) {
      this.onDrop(event.dataTransfer);
    }
  }
}

/** Says why nothing came. */
function Notice({ model }: { model: StorageModel }): React.ReactElement | null {
  const { trans } = useHost();
  useSignal(model.windowChanged);
  return model.error === '' ? null : (
    <p role="alert" className="pai-Storage-error">
      {trans.__('This folder cannot be shown: %1', model.error)}
    </p>
  );
}

/** Tells which part of a large folder is shown, and turns to the others; or that there is nothing. */
function Pages(props: { model: StorageModel; onTurn: (pages: -1 | 1) => void }): React.ReactElement | null {
  const { model, onTurn } = props;
  const { trans } = useHost();
  useSignal(model.windowChanged);
  const [first, last] = model.range;
  if (model.error !== '') {
    return null;
  }
  if (model.total === 0) {
    return <p role="status">{trans.__('Nothing is here yet. Drop files or folders to upload them.')}</p>;
  }
  if (first === 1 && last === model.total) {
    return null;
  }
  return (
    <nav aria-label={trans.__('Parts of this folder')}>
      <IconButton icon="left" label={trans.__('Those before')} disabled={first === 1} onClick={() => onTurn(-1)} />
      <span role="status">{trans.__('%1–%2 of %3', number(first), number(last), number(model.total))}</span>
      <IconButton
        icon="right"
        label={trans.__('Those after')}
        disabled={last === model.total}
        onClick={() => onTurn(1)}
      />
    </nav>
  );
}

function button(icon: LabIcon, tooltip: string, onClick: () => unknown): ToolbarButton {
  return new ToolbarButton({ icon, tooltip, onClick: () => void onClick() });
}

function number(value: number): string {
  return value.toLocaleString();
}

/** ms between two looks at a folder that is in view. */
const REFRESH = 30_000;

/** What the browser shows: a part of a folder, which one, and why nothing came. */
export class StorageModel extends FilterFileBrowserModel {
  /** @param inView - tells whether anybody sees the folder; else nothing is asked */
  constructor(
    options: Pick<FilterFileBrowserModel.IOptions, 'manager' | 'translator' | 'state'>,
    private readonly drive: StorageDrive,
    inView: () => boolean
  ) {
    super({
      ...options,
      driveName: DRIVE,
      auto: false,
      refreshInterval: REFRESH,
      refreshStandby: () => (inView() ? 'when-hidden' : true)
    });
    this.language = (options.translator?.languageCode ?? 'en').replace('_', '-');
    drive.fileChanged.connect(this.onDriveChanged, this);
    this.connectionFailure.connect((_, error) => this.setError(error.message));
    this.pathChanged.connect(() => {
      this.page = 0;
    });
  }

  /** Where the browser is, as a path of the storage. */
  get folder(): string {
    return join(this.path.slice(this.rootPath.length));
  }

  /** Why the folder could not be listed; empty where it could. */
  get error(): string {
    return this._error;
  }

  /** Another part is shown, or why there is none. */
  readonly windowChanged = new Signal();

  /** How many there are that the filter lets through. */
  get total(): number {
    return this._total;
  }

  /** Of how many the first and the last one shown are, from 1; 0 where there is none. */
  get range(): [first: number, last: number] {
    return this._total === 0 ? [0, 0] : [this.page * SHOWN + 1, Math.min(this._total, (this.page + 1) * SHOWN)];
  }

  /** Choose another part of the folder; the listing shows it when it is next drawn. */
  turn(pages: -1 | 1): void {
    this.page = Math.min(Math.max(0, this.page + pages), lastPage(this._total));
  }

  /** Choose the part in which something is, as soon as it is listed. */
  turnTo(name: string): void {
    this.wanted = name;
  }

  /** Set how the listing is ordered. */
  setOrder(order: IOrder): void {
    this.order = order;
  }

  /** Return the part that is shown. */
  override items(): IterableIterator<Contents.IModel> {
    const all = ordered(Array.from(super.items()), this.order, this.language);
    const shown = this.wanted === null ? -1 : all.findIndex(item => item.name === this.wanted);
    if (shown >= 0) {
      this.page = Math.floor(shown / SHOWN);
      this.wanted = null;
    }
    this.page = Math.min(this.page, lastPage(all.length));
    if (this._total !== all.length || this.page !== this.toldPage) {
      this._total = all.length;
      this.toldPage = this.page;
      queueMicrotask(() => this.windowChanged.emit());
    }
    return all.slice(this.page * SHOWN, (this.page + 1) * SHOWN)[Symbol.iterator]();
  }

  override dispose(): void {
    this.drive.fileChanged.disconnect(this.onDriveChanged, this);
    super.dispose();
  }

  protected override handleContents(contents: Contents.IModel): void {
    super.handleContents(contents);
    this.setError('');
  }

  private setError(error: string): void {
    if (error !== this._error) {
      this._error = error;
      this.windowChanged.emit();
    }
  }

  /** JupyterLab's own model overlooks what changes on a drive with a name. */
  private onDriveChanged(_: StorageDrive, { type, oldValue, newValue }: Contents.IChangedArgs): void {
    const here = (value: Partial<Contents.IModel> | null) =>
      value?.path !== undefined && parentOf(join(value.path)) === this.folder;
    if (here(newValue) && (type === 'new' || type === 'rename')) {
      this.wanted = newValue?.name ?? null;
    }
    if (here(oldValue) || here(newValue)) {
      void this.refresh();
    }
  }

  private readonly language: string;
  private order: IOrder = { key: 'name', direction: 'ascending' };
  private page = 0;
  private toldPage = 0;
  private wanted: string | null = null;
  private _total = 0;
  private _error = '';
}
