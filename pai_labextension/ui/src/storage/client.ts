// The cluster's storage, as the notebook server forwards it: WebHDFS, and what the scheduler has beside it.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { GenericSchema, InferOutput, is } from 'valibot';

import { json, parsed } from '../answers';
import { FileStatus } from '../generated/types.gen';
import { vSummaryAnswer, vListingAnswer, vStatusAnswer, vPathAnswer, vRefusal } from '../generated/valibot.gen';
import { encoded, join } from './paths';

/** Entries that are asked for at a time. */
export const PAGE = 1000;
const FORBIDDEN = 403;

/** A file or folder. `length` in bytes, `modified` in ms since the epoch. */
export interface IFileInfo {
  readonly path: string;
  readonly isFolder: boolean;
  readonly length: number;
  readonly modified: number;
}

/** A part of what is in a folder, in the order of names; `remaining`: how many follow. */
export interface IFolderPage {
  readonly entries: readonly IFileInfo[];
  readonly remaining: number;
}

/** What is in a tree, its own folder counted; `length` in bytes. */
export interface ISummary {
  readonly files: number;
  readonly folders: number;
  readonly length: number;
}

/** The storage, or the way to it, refused; `exception` is WebHDFS's name for the reason. */
export class StorageError extends ServerConnection.ResponseError {
  constructor(
    response: Response,
    readonly exception: string,
    message: string
  ) {
    super(response, message);
  }

  get status(): number {
    return this.response.status;
  }
}

/** What the uploader needs of the storage. Every call rejects with `StorageError`, or `TypeError` if nobody answers. */
export interface IUploadClient {
  find(path: string): Promise<IFileInfo | null>;
  mkdirs(path: string): Promise<void>;
  create(path: string, contents: Blob, onSent: (bytes: number) => void, signal: AbortSignal): Promise<void>;
  append(
    path: string,
    offset: number,
    contents: Blob,
    onSent: (bytes: number) => void,
    signal: AbortSignal
  ): Promise<void>;
  read(path: string, length?: number, offset?: number): Promise<Uint8Array<ArrayBuffer>>;
  rename(path: string, target: string, overwrite: boolean): Promise<void>;
  setModified(path: string, modified: number): Promise<void>;
  remove(path: string): Promise<void>;
}

type Query = Record<string, string | number | boolean>;

/** Reads and changes the storage in the person's name. Paths begin with a slash. */
export class StorageClient implements IUploadClient {
  /**
   * @param settings - the notebook server
   * @param language - of the sentences the scheduler writes, as JupyterLab names it ("zh_CN")
   */
  constructor(
    readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    private readonly trans: TranslationBundle
  ) {}

  /** The path of the person's own tree. */
  async home(): Promise<string> {
    return (await this.get(vPathAnswer, '/', 'GETHOMEDIRECTORY')).Path;
  }

  async status(path: string): Promise<IFileInfo> {
    return info(path, (await this.get(vStatusAnswer, path, 'GETFILESTATUS')).FileStatus);
  }

  /** Describe a file or folder; `null` where there is none. */
  async find(path: string): Promise<IFileInfo | null> {
    try {
      return await this.status(path);
    } catch (error) {
      if (error instanceof StorageError && error.status === 404) {
        return null;
      }
      throw error;
    }
  }

  /** List a folder: `limit` entries at most that come after the name `after`. */
  async page(path: string, after = '', limit = PAGE): Promise<IFolderPage> {
    const query = { startAfter: after, limit };
    const listing = (await this.get(vListingAnswer, path, 'LISTSTATUS_BATCH', query)).DirectoryListing;
    const statuses = listing.partialListing.FileStatuses.FileStatus;
    return {
      entries: statuses.map(status => info(join(path, status.pathSuffix), status)),
      remaining: listing.remainingEntries
    };
  }

  async summary(path: string): Promise<ISummary> {
    const summary = (await this.get(vSummaryAnswer, path, 'GETCONTENTSUMMARY')).ContentSummary;
    return { files: summary.fileCount, folders: summary.directoryCount, length: summary.length };
  }

  async mkdirs(path: string): Promise<void> {
    await this.send('PUT', path, 'MKDIRS', {});
  }

  async rename(path: string, target: string, overwrite: boolean): Promise<void> {
    const renameoptions = overwrite ? 'OVERWRITE' : 'NONE';
    await this.send('PUT', path, 'RENAME', { destination: target, renameoptions });
  }

  /** Copy a file within the storage. */
  async copy(path: string, target: string): Promise<void> {
    await this.send('PUT', path, 'COPY', { destination: target });
  }

  /** Remove a file, or a folder with all that is in it; nothing happens where there is nothing. */
  async remove(path: string): Promise<void> {
    await this.send('DELETE', path, 'DELETE', { recursive: true });
  }

  async setModified(path: string, modified: number): Promise<void> {
    await this.send('PUT', path, 'SETTIMES', { modificationtime: modified, accesstime: -1 });
  }

  /** Read a file from `offset` on, `length` bytes at most. */
  async read(path: string, length?: number, offset = 0): Promise<Uint8Array<ArrayBuffer>> {
    const response = await this.send('GET', path, 'OPEN', { offset, ...(length === undefined ? {} : { length }) });
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Write a file, which has its name only when it is whole. */
  async write(path: string, contents: Blob): Promise<void> {
    await this.send('PUT', path, 'CREATE', { overwrite: true }, contents);
  }

  /** Where a browser downloads a file, or a folder as a zip file. */
  downloadUrl(path: string, isFolder: boolean): string {
    return this.address(path, isFolder ? 'ARCHIVE' : 'OPEN', { _xsrf: xsrf() });
  }

  /** Write a file and tell how much of it has gone off. */
  create(path: string, contents: Blob, onSent: (bytes: number) => void, signal: AbortSignal): Promise<void> {
    return this.transfer('PUT', this.address(path, 'CREATE', { overwrite: true }), contents, onSent, signal);
  }

  /** Write on at a file's end, which must be at `offset` (503), and tell how much has gone off. */
  append(
    path: string,
    offset: number,
    contents: Blob,
    onSent: (bytes: number) => void,
    signal: AbortSignal
  ): Promise<void> {
    return this.transfer('POST', this.address(path, 'APPEND', { offset }), contents, onSent, signal);
  }

  private async get<Schema extends GenericSchema>(
    schema: Schema,
    path: string,
    operation: string,
    query: Query = {}
  ): Promise<InferOutput<Schema>> {
    return parsed(schema, json(await (await this.send('GET', path, operation, query)).text()), this.trans);
  }

  private async send(method: string, path: string, operation: string, query: Query, body?: Blob): Promise<Response> {
    const headers: Record<string, string> = { 'Accept-Language': this.language.replace('_', '-') };
    if (body !== undefined) {
      headers['Content-Type'] = 'application/octet-stream';
    }
    const url = this.address(path, operation, query);
    const response = await ServerConnection.makeRequest(url, { method, headers, body: body ?? null }, this.settings);
    if (!response.ok) {
      throw refusal(response, await response.text());
    }
    return response;
  }

  /** Send with an XMLHttpRequest: `fetch` does not tell how much has gone off. */
  private transfer(
    method: string,
    url: string,
    contents: Blob,
    onSent: (bytes: number) => void,
    signal: AbortSignal
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const abort = () => request.abort();
      request.open(method, url);
      request.setRequestHeader('Accept-Language', this.language.replace('_', '-'));
      request.setRequestHeader('Content-Type', 'application/octet-stream');
      request.setRequestHeader('X-XSRFToken', xsrf());
      if (this.settings.token) {
        request.setRequestHeader('Authorization', `token ${this.settings.token}`);
      }
      request.upload.onprogress = event => onSent(event.loaded);
      request.onload = () => {
        const { status, statusText, responseText } = request;
        if (status >= 200 && status < 300) {
          resolve();
          return;
        }
        const refused = refusal(new Response(null, { status, statusText }), responseText);
        if (status === FORBIDDEN) {
          void this.explained(refused).then(reject);
        } else {
          reject(refused);
        }
      };
      request.onerror = () => void this.explained(new TypeError('the connection broke off')).then(reject);
      request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
      request.onloadend = () => signal.removeEventListener('abort', abort);
      if (signal.aborted) {
        reject(new DOMException('cancelled', 'AbortError'));
        return;
      }
      signal.addEventListener('abort', abort);
      request.send(contents);
    });
  }

  /**
   * Return in words why an XMLHttpRequest failed: only `fetch` knows of an expired login, and that nobody answers
   * (`ended/speaking.ts`), so that it is asked for something small.
   */
  private async explained(error: Error): Promise<Error> {
    try {
      await this.home();
      return error;
    } catch (said) {
      return said as Error;
    }
  }

  private address(path: string, operation: string, query: Query = {}): string {
    const given = Object.entries({ op: operation, ...query }).filter(([, value]) => value !== '');
    const text = given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&');
    return `${URLExt.join(this.settings.baseUrl, 'pai/webhdfs/v1')}${encoded(path)}?${text}`;
  }
}

/** Return whether trying again later may help: nobody answered, or not now. */
export function mayPass(error: unknown): boolean {
  return error instanceof StorageError ? [429, 502, 503, 504].includes(error.status) : error instanceof TypeError;
}

function info(path: string, status: FileStatus): IFileInfo {
  const { type, length, modificationTime } = status;
  return { path, isFolder: type === 'DIRECTORY', length, modified: modificationTime };
}

/** What was refused, in the words of the storage, or of the notebook server before it. */
function refusal(response: Response, text: string): StorageError {
  const answer = json(text);
  const { code, message, RemoteException } = is(vRefusal, answer) ? answer : {};
  const said = RemoteException ?? { exception: code, message };
  return new StorageError(
    response,
    said.exception ?? 'UnknownError',
    said.message ?? `${response.status} ${response.statusText}`
  );
}

function xsrf(): string {
  return /\b_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? '';
}
