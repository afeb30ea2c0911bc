// The uploads of this page: which wait, which run and how far, which failed and why.

import { IDisposable, Signal } from '../data/store';
import { IFileInfo, IFolderPage, IUploadClient } from './client';
import { IChosen } from './dropped';
import { join, parentOf } from './paths';
import { Speed } from './quantities';
import { isSame, partOf, PIECE, sendFile, Wait } from './sending';

/** Files that are sent at the same time. */
const PARALLEL = 3;
/** So many files in one folder are asked for one by one; if there are more, the folder is listed. */
const FEW = 3;
/** ms between two signs of progress: a view need not draw more often. */
const PROGRESS = 100;

export type UploadState = 'waiting' | 'running' | 'done' | 'same' | 'failed' | 'cancelled';

/** One file on its way. */
export interface IUpload {
  /** As it was dropped, `data/train/0.png`. */
  readonly label: string;
  readonly file: File;
  readonly target: string;
  readonly state: UploadState;
  /** Bytes that are there. */
  readonly sent: number;
  /** Why it failed. */
  readonly error: unknown;
}

/** What the storage must be able to do for uploads. */
export interface IUploadsClient extends IUploadClient {
  page(path: string, after?: string): Promise<IFolderPage>;
}

/** What to do about files that are there and differ; `null`: nothing at all is uploaded. */
export type Conflict = 'replace' | 'keep' | null;

export interface ITotals {
  readonly files: number;
  readonly filesOver: number;
  readonly failed: number;
  readonly bytes: number;
  readonly bytesOver: number;
  /** Bytes in a second; 0 where that is not known. */
  readonly speed: number;
}

interface IMutableUpload extends IUpload {
  state: UploadState;
  sent: number;
  error: unknown;
  controller: AbortController;
}

export class Uploads implements IDisposable {
  /**
   * @param askReplace - decides about files that are there and differ
   * @param now - the time in ms
   */
  constructor(
    private readonly client: IUploadsClient,
    private readonly askReplace: (paths: readonly string[]) => Promise<Conflict>,
    private readonly now: () => number = () => performance.now(),
    private readonly wait?: Wait
  ) {}

  get items(): readonly IUpload[] {
    return this._items;
  }

  /** Something is on its way, or will be. */
  get active(): boolean {
    return this._items.some(item => item.state === 'waiting' || item.state === 'running');
  }

  readonly changed = new Signal();

  /** Tells the path of a file or folder that has just come to the storage. */
  readonly arrived = new Signal<string>();

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  get totals(): ITotals {
    const counted = this._items.filter(item => item.state !== 'cancelled');
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    return {
      files: counted.length,
      filesOver: counted.filter(item => item.state === 'done' || item.state === 'same').length,
      failed: counted.filter(item => item.state === 'failed').length,
      bytes: sum(counted.map(item => item.file.size)),
      bytesOver: sum(counted.map(item => item.sent)),
      speed: this.active ? this.speed.value : 0
    };
  }

  dispose(): void {
    this._isDisposed = true;
    this.cancelAll();
    this.changed.clear();
    this.arrived.clear();
  }

  /** Upload into a folder; resolves when it is decided what is sent, not when it is there. */
  async add(chosen: IChosen, folder: string): Promise<void> {
    const wanted = chosen.files.map(({ file, path }) => ({ file, label: path, target: join(folder, path) }));
    const there = await this.present(wanted.map(({ target }) => target));
    const differing = wanted.filter(({ file, target }) => there.has(target) && !isSame(there.get(target), file));
    let kept = new Set<string>();
    if (differing.length > 0) {
      const answer = await this.askReplace(differing.map(({ target }) => target));
      if (answer === null) {
        return;
      }
      kept = answer === 'keep' ? new Set(differing.map(({ target }) => target)) : kept;
    }
    for (const empty of chosen.folders) {
      await this.client.mkdirs(join(folder, empty));
      this.arrived.emit(join(folder, empty));
    }
    if (!this.active) {
      this.clear();
    }
    for (const { file, label, target } of wanted.filter(one => !kept.has(one.target))) {
      const same = isSame(there.get(target), file);
      const state = same ? 'same' : 'waiting';
      const sent = same ? file.size : 0;
      this._items.push({ label, file, target, state, sent, error: null, controller: new AbortController() });
    }
    this.proceed();
  }

  cancel(upload: IUpload): void {
    const item = upload as IMutableUpload;
    if (item.state === 'waiting' || item.state === 'running' || item.state === 'failed') {
      item.state = 'cancelled';
      item.controller.abort();
      this.proceed();
    }
  }

  cancelAll(): void {
    this._items.filter(item => item.state !== 'failed').forEach(item => this.cancel(item));
  }

  /** Try again what failed. */
  retry(uploads: readonly IUpload[]): void {
    for (const item of uploads as readonly IMutableUpload[]) {
      if (item.state === 'failed') {
        item.state = 'waiting';
        item.error = null;
        item.controller = new AbortController();
      }
    }
    this.proceed();
  }

  /** Forget what is over. */
  clear(): void {
    this._items = this._items.filter(item => item.state === 'waiting' || item.state === 'running');
    this.emit();
  }

  /** Begin as many as may run at a time. */
  private proceed(): void {
    let running = this._items.filter(item => item.state === 'running').length;
    for (const item of this._items) {
      if (running >= PARALLEL) {
        break;
      }
      if (item.state === 'waiting') {
        running += 1;
        void this.run(item);
      }
    }
    this.emit();
  }

  private async run(item: IMutableUpload): Promise<void> {
    const { controller } = item;
    const onSent = (bytes: number) => {
      if (item.controller === controller && item.state === 'running') {
        item.sent = Math.min(bytes, item.file.size);
        this.progress();
      }
    };
    item.state = 'running';
    try {
      await sendFile(this.client, item.file, item.target, onSent, controller.signal, this.wait);
      if (item.state === 'running') {
        item.state = 'done';
        item.sent = item.file.size;
      }
      this.arrived.emit(item.target);
    } catch (error) {
      if (item.state === 'running') {
        item.state = 'failed';
        item.error = error;
      } else if (item.file.size > PIECE) {
        // who cancels wants nothing kept; whether that succeeds is of no account to them
        await this.client.remove(partOf(item.file, item.target)).catch(() => undefined);
      }
    }
    this.proceed();
  }

  private progress(): void {
    const time = this.now();
    if (time - this.toldAt >= PROGRESS) {
      this.toldAt = time;
      this.speed.note(time, this.totals.bytesOver);
      this.emit();
    }
  }

  private emit(): void {
    if (!this._isDisposed) {
      this.changed.emit();
    }
  }

  /** Find which of these paths are there. */
  private async present(paths: readonly string[]): Promise<Map<string, IFileInfo>> {
    const byFolder = new Map<string, string[]>();
    for (const path of paths) {
      byFolder.set(parentOf(path), [...(byFolder.get(parentOf(path)) ?? []), path]);
    }
    const found = new Map<string, IFileInfo>();
    for (const [folder, wanted] of byFolder) {
      if (wanted.length > FEW) {
        (await this.listed(folder)).forEach(info => found.set(info.path, info));
        continue;
      }
      for (const path of wanted) {
        const info = await this.client.find(path);
        if (info !== null) {
          found.set(path, info);
        }
      }
    }
    return found;
  }

  private async listed(folder: string): Promise<IFileInfo[]> {
    const all: IFileInfo[] = [];
    if ((await this.client.find(folder)) === null) {
      return all;
    }
    for (let after = ''; ;) {
      const page = await this.client.page(folder, after);
      all.push(...page.entries);
      const last = page.entries.at(-1);
      if (page.remaining === 0 || last === undefined) {
        return all;
      }
      after = last.path.slice(last.path.lastIndexOf('/') + 1);
    }
  }

  private readonly speed = new Speed();
  private _items: IMutableUpload[] = [];
  private _isDisposed = false;
  private toldAt = -Infinity;
}
