// What is known of one task's address, and what came of trying it.

import { Client, ICheck, IConnect, IPublicKey, ITask, KeyFormat } from '../../console/data/client';
import { IDisposable, Signal } from '../../console/data/store';

/** Asks for a task's address and its owner's keys; each part says by itself why it is not known. */
export class ConnectModel implements IDisposable {
  constructor(
    readonly task: ITask,
    private readonly client: Client
  ) {}

  readonly changed = new Signal();

  /** `null` until it is known. */
  get connect(): IConnect | null {
    return this._connect;
  }

  /** Why it is not known. */
  get error(): string {
    return this._error;
  }

  /** `null`: not tried, or being tried. */
  get checked(): ICheck | null {
    return this._checked;
  }

  get isChecking(): boolean {
    return this._isChecking;
  }

  /** `null` until they are known. */
  get keys(): readonly IPublicKey[] | null {
    return this._keys;
  }

  /** Why the keys are not known, or were not changed. */
  get keysError(): string {
    return this._keysError;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this.changed.clear();
  }

  /** Ask for the address again. */
  async refresh(): Promise<void> {
    try {
      this._connect = await this.client.connect(this.task);
      this._error = '';
    } catch (error) {
      this._error = sentence(error);
    }
    this.tell();
  }

  /** Log in and tell how that went. */
  async check(): Promise<void> {
    this._checked = null;
    this._isChecking = true;
    this.tell();
    try {
      this._checked = await this.client.checkConnection(this.task);
    } catch (error) {
      this._checked = { ok: false, message: sentence(error), milliseconds: 0 };
    }
    this._isChecking = false;
    this.tell();
  }

  /** Start code-server; give where it is. */
  codeServer(): Promise<string> {
    return this.client.codeServer(this.task);
  }

  /** Read the key of the job. */
  key(format: KeyFormat): Promise<Blob> {
    return this.client.key(this.task, format);
  }

  /** Return the link to a port, as the notebook server told it. */
  link(url: string): string {
    return this.client.link(url);
  }

  async refreshKeys(): Promise<void> {
    await this.withKeys(async () => undefined);
  }

  /** Register a key; tell whether that was taken. */
  addKey(key: string): Promise<boolean> {
    return this.withKeys(() => this.client.addPublicKey(this.task.user, key));
  }

  /** Forget a key; tell whether that was taken. */
  removeKey({ fingerprint }: IPublicKey): Promise<boolean> {
    return this.withKeys(() => this.client.removePublicKey(this.task.user, fingerprint));
  }

  private async withKeys(change: () => Promise<void>): Promise<boolean> {
    let done = true;
    try {
      await change();
      this._keys = await this.client.publicKeys(this.task.user);
      this._keysError = '';
    } catch (error) {
      this._keysError = sentence(error);
      done = false;
    }
    this.tell();
    return done;
  }

  private tell(): void {
    if (!this._isDisposed) {
      this.changed.emit();
    }
  }

  private _connect: IConnect | null = null;
  private _error = '';
  private _checked: ICheck | null = null;
  private _isChecking = false;
  private _keys: readonly IPublicKey[] | null = null;
  private _keysError = '';
  private _isDisposed = false;
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
