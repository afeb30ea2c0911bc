// What the browser of the storage shows: a part of a folder, which one, and why nothing came.

import { FilterFileBrowserModel } from '@jupyterlab/filebrowser';
import { Contents } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { DRIVE, StorageDrive } from './drive';
import { join, parentOf } from '../../console/storage/paths';
import { IOrder, lastPage, ordered, SHOWN } from './window';

/** ms between two looks at a folder that is in view. */
const REFRESH = 30_000;

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
  get windowChanged(): ISignal<this, void> {
    return this._windowChanged;
  }

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
      queueMicrotask(() => this._windowChanged.emit());
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
      this._windowChanged.emit();
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

  private readonly _windowChanged = new Signal<this, void>(this);
  private readonly language: string;
  private order: IOrder = { key: 'name', direction: 'ascending' };
  private page = 0;
  private toldPage = 0;
  private wanted: string | null = null;
  private _total = 0;
  private _error = '';
}
