// The storage as one of JupyterLab's drives: what opens, saves, renames and copies files finds them there.

import { Contents, ServerConnection } from '@jupyterlab/services';
import { ISignal, Signal } from '@lumino/signaling';

import { ApiError } from '../console/data/errors';
import { ITranslation } from '../console/host';
import { IFileInfo, StorageClient } from '../console/storage/client';
import { join, nameOf, numbered, parentOf, partsOf } from '../console/storage/paths';
import { bytesText, LARGEST_OPENED } from '../console/storage/quantities';
import { LabTransport } from './host';

/** What stands before the paths of the drive, as in `PAI:alice/code`. */
export const DRIVE = 'PAI';

/** The storage refused, as JupyterLab knows a refusal; `code` is WebHDFS's name for the reason. */
export class DriveError extends ServerConnection.ResponseError {
  constructor({ status, code, message }: ApiError) {
    // (a response has no status below 200)
    super(new Response(null, { status: Math.max(status, 200) }), message);
    this.code = code;
  }

  readonly code: string;
}

/** Asks the storage for JupyterLab. */
class DriveClient extends StorageClient {
  override async find(path: string): Promise<IFileInfo | null> {
    try {
      return await this.status(path);
    } catch (error) {
      if (error instanceof DriveError && error.response.status === 404) {
        return null;
      }
      throw error;
    }
  }

  protected override async send(...question: Parameters<StorageClient['send']>): Promise<Response> {
    try {
      return await super.send(...question);
    } catch (error) {
      throw error instanceof ApiError && error.status !== 0 ? new DriveError(error) : error;
    }
  }
}

export class StorageDrive implements Contents.IDrive {
  constructor(
    private readonly transport: LabTransport,
    private readonly trans: ITranslation
  ) {
    this.client = new DriveClient(transport, trans);
  }

  readonly client: StorageClient;

  readonly name = DRIVE;

  get serverSettings(): ServerConnection.ISettings {
    return this.transport.settings;
  }

  get fileChanged(): ISignal<this, Contents.IChangedArgs> {
    return this._fileChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  async get(localPath: string, options: Contents.IFetchOptions = {}): Promise<Contents.IModel> {
    const path = join(localPath);
    const info: IFileInfo = path === '/' ? root() : await this.client.status(path);
    if (options.content === false) {
      return modelOf(info);
    }
    return info.isFolder ? this.folder(info) : this.file(info, options);
  }

  async getDownloadUrl(localPath: string): Promise<string> {
    const path = join(localPath);
    const isFolder = path === '/' || (await this.client.status(path)).isFolder;
    return this.client.downloadUrl(path, isFolder);
  }

  async newUntitled(options: Contents.ICreateOptions = {}): Promise<Contents.IModel> {
    const isFolder = options.type === 'directory';
    const isNotebook = options.type === 'notebook';
    const ending = isFolder ? '' : isNotebook ? '.ipynb' : (options.ext ?? '.txt').replace(/^(?=[^.])/, '.');
    const stem = isFolder ? this.trans.__('Untitled folder') : isNotebook ? 'Untitled' : 'untitled';
    const path = await this.free(join(options.path ?? '/', `${stem}${ending}`), isFolder);
    if (isFolder) {
      await this.client.mkdirs(path);
    } else {
      const content = isNotebook ? emptyNotebook() : '';
      await this.client.write(path, encode({ type: isNotebook ? 'notebook' : 'file', content }));
    }
    return this.tell('new', null, modelOf(await this.client.status(path)));
  }

  async delete(localPath: string): Promise<void> {
    await this.client.remove(join(localPath));
    this._fileChanged.emit({ type: 'delete', oldValue: { path: localPath }, newValue: null });
  }

  async rename(oldLocalPath: string, newLocalPath: string): Promise<Contents.IModel> {
    const target = join(newLocalPath);
    if (target !== join(oldLocalPath)) {
      const there = await this.client.find(target);
      if (there !== null) {
        const message = this.trans.__('“%1” is already there: choose another name.', nameOf(target));
        // JupyterLab then asks whether to replace it
        throw new ServerConnection.ResponseError(new Response(null, { status: 409 }), message);
      }
      await this.client.rename(join(oldLocalPath), target, false);
    }
    return this.tell('rename', { path: oldLocalPath }, modelOf(await this.client.status(target)));
  }

  async save(localPath: string, options: Partial<Contents.IModel> = {}): Promise<Contents.IModel> {
    const path = join(localPath);
    if (options.type === 'directory') {
      await this.client.mkdirs(path);
    } else {
      await this.client.write(path, encode(options));
    }
    return this.tell('save', null, modelOf(await this.client.status(path)));
  }

  async copy(localPath: string, toLocalDir: string): Promise<Contents.IModel> {
    const path = join(localPath);
    const info = await this.client.status(path);
    if (info.isFolder) {
      throw new Error(this.trans.__('“%1” is a folder: only files can be copied here.', nameOf(path)));
    }
    const target = await this.free(join(toLocalDir, nameOf(path)), false);
    await this.client.copy(path, target);
    return this.tell('new', null, modelOf(await this.client.status(target)));
  }

  /** The storage keeps no checkpoints; JupyterLab wants to hear of one after each save. */
  async createCheckpoint(localPath: string): Promise<Contents.ICheckpointModel> {
    return { id: '', last_modified: (await this.get(localPath, { content: false })).last_modified };
  }

  async listCheckpoints(): Promise<Contents.ICheckpointModel[]> {
    return [];
  }

  async restoreCheckpoint(): Promise<void> {
    throw new Error(this.trans.__('The storage keeps no checkpoints.'));
  }

  async deleteCheckpoint(): Promise<void> {
    // there is none
  }

  /** Announce a change in a folder, so that views of it are refreshed. */
  announce(path: string): void {
    const name = nameOf(path);
    const value = { name, path: partsOf(path).join('/') };
    this._fileChanged.emit({ type: 'new', oldValue: null, newValue: value });
  }

  private async folder(info: IFileInfo): Promise<Contents.IModel> {
    const entries = await this.client.entries(info.path);
    return { ...modelOf(info), content: entries.map(modelOf) };
  }

  private async file(info: IFileInfo, options: Contents.IFetchOptions): Promise<Contents.IModel> {
    const name = nameOf(info.path);
    if (info.length > LARGEST_OPENED) {
      throw new Error(
        this.trans.__(
          '“%1” has %2. At most %3 are opened in the browser: download it instead.',
          name,
          bytesText(info.length),
          bytesText(LARGEST_OPENED)
        )
      );
    }
    const type = options.type ?? typeOf(info);
    try {
      const { format, content } = decode(await this.client.read(info.path), type, options.format);
      return { ...modelOf(info), type, format, content };
    } catch (error) {
      if (error instanceof FormatError) {
        throw new Error(this.trans.__('“%1” is not text in UTF-8: download it instead.', name));
      }
      if (error instanceof SyntaxError) {
        throw new Error(this.trans.__('“%1” is not a valid notebook: %2', name, error.message));
      }
      throw error;
    }
  }

  /** Find a name that nothing has yet, with a number where there must be one. */
  private async free(path: string, isFolder: boolean): Promise<string> {
    const folder = parentOf(path);
    let candidate = path;
    for (let number = 1; (await this.client.find(candidate)) !== null; number++) {
      candidate = join(folder, numbered(nameOf(path), number, isFolder));
    }
    return candidate;
  }

  private tell(
    type: Contents.IChangedArgs['type'],
    oldValue: Partial<Contents.IModel> | null,
    newValue: Contents.IModel
  ): Contents.IModel {
    this._fileChanged.emit({ type, oldValue, newValue });
    return newValue;
  }

  private readonly _fileChanged = new Signal<this, Contents.IChangedArgs>(this);
  private _isDisposed = false;
}

function root(): IFileInfo {
  return { path: '/', isFolder: true, length: 0, modified: 0 };
}

// Files as JupyterLab's models of contents, and back.

/** A file is no text, or no notebook: it cannot be shown as what was asked for. */
export class FormatError extends Error {}

/** Return what JupyterLab takes something for. */
export function typeOf(info: IFileInfo): Contents.ContentType {
  return info.isFolder ? 'directory' : info.path.endsWith('.ipynb') ? 'notebook' : 'file';
}

/** The model of a file or folder, without what is in it. */
export function modelOf(info: IFileInfo): Contents.IModel {
  const modified = new Date(info.modified).toISOString();
  return {
    name: nameOf(info.path),
    path: partsOf(info.path).join('/'),
    type: typeOf(info),
    writable: true,
    created: modified,
    last_modified: modified,
    mimetype: '',
    content: null,
    format: info.isFolder || info.path.endsWith('.ipynb') ? 'json' : null,
    ...(info.isFolder ? {} : { size: info.length })
  };
}

/** The contents of a file in a format; without one: text where it is text. */
export function decode(
  bytes: Uint8Array,
  type: Contents.ContentType,
  format: Contents.FileFormat | undefined
): { format: Contents.FileFormat; content: unknown } {
  if (type === 'notebook' || format === 'json') {
    // what was just created has no contents yet
    return { format: 'json', content: bytes.length === 0 ? emptyNotebook() : JSON.parse(textOf(bytes)) };
  }
  if (format === 'base64') {
    return { format, content: toBase64(bytes) };
  }
  try {
    return { format: 'text', content: textOf(bytes) };
  } catch (error) {
    if (format === 'text' || !(error instanceof FormatError)) {
      throw error;
    }
    return { format: 'base64', content: toBase64(bytes) };
  }
}

/** What is to be written for a model; a notebook as Jupyter writes it. */
export function encode(model: Partial<Contents.IModel>): Blob {
  if (model.format === 'base64') {
    return new Blob([fromBase64(String(model.content ?? ''))]);
  }
  if (model.type === 'notebook' || model.format === 'json') {
    return new Blob([JSON.stringify(model.content, null, 1) + '\n']);
  }
  return new Blob([String(model.content ?? '')]);
}

/** A notebook without cells. */
export function emptyNotebook(): unknown {
  return { cells: [], metadata: {}, nbformat: 4, nbformat_minor: 5 };
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FormatError();
  }
}

function toBase64(bytes: Uint8Array): string {
  const pieces: string[] = [];
  // as many bytes at a time as a call has room for
  for (let start = 0; start < bytes.length; start += 0x8000) {
    pieces.push(String.fromCharCode(...bytes.subarray(start, start + 0x8000)));
  }
  return btoa(pieces.join(''));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), character => character.charCodeAt(0));
}
