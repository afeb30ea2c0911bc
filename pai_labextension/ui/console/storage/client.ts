// The cluster's storage, as the notebook server forwards it: WebHDFS, and what the scheduler has beside it.

import { GenericSchema, InferOutput } from 'valibot';

import { accepted, ApiError, json, parsed } from '../data/errors';
import { IQuestion, ITranslation, ITransport, Query } from '../host';
import { FileStatus } from '../generated/types.gen';
import { vSummaryAnswer, vListingAnswer, vStatusAnswer, vPathAnswer } from '../generated/valibot.gen';
import { isPart, join, nameOf, partsOf } from './paths';

/** Entries that are asked for at a time. */
export const PAGE = 1000;
/** So many entries of a folder are fetched; who has more must look into it otherwise. */
export const MOST_LISTED = 100_000;

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

/** What the uploader needs of the storage. Every call rejects with `ApiError`. */
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

/** Reads and changes the storage in the person's name. Paths begin with a slash. */
export class StorageClient implements IUploadClient {
  constructor(
    private readonly transport: ITransport,
    private readonly trans: ITranslation
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
      if (error instanceof ApiError && error.status === 404) {
        return null;
      }
      throw error;
    }
  }

  /** List a folder: `limit` entries at most that come after the name `after`. */
  async page(path: string, after = '', limit = PAGE): Promise<IFolderPage> {
    const query = { startAfter: after === '' ? undefined : after, limit };
    const listing = (await this.get(vListingAnswer, path, 'LISTSTATUS_BATCH', query)).DirectoryListing;
    const statuses = listing.partialListing.FileStatuses.FileStatus;
    return {
      entries: statuses.map(status => info(join(path, status.pathSuffix), status)),
      remaining: listing.remainingEntries
    };
  }

  /** List a folder, without the parts of files that are still being uploaded. */
  async entries(path: string): Promise<IFileInfo[]> {
    const all: IFileInfo[] = [];
    for (let after = ''; ;) {
      const { entries, remaining } = await this.page(path, after);
      all.push(...entries.filter(entry => !isPart(nameOf(entry.path))));
      const last = entries.at(-1);
      if (remaining === 0 || last === undefined || all.length >= MOST_LISTED) {
        return all;
      }
      after = nameOf(last.path);
    }
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
    return this.transport.href(routeOf(path), { op: isFolder ? 'ARCHIVE' : 'OPEN' });
  }

  /** Write a file and tell how much of it has gone off. */
  async create(path: string, contents: Blob, onSent: (bytes: number) => void, signal: AbortSignal): Promise<void> {
    await this.send('PUT', path, 'CREATE', { overwrite: true }, contents, onSent, signal);
  }

  /** Write on at a file's end, which must be at `offset` (503), and tell how much has gone off. */
  async append(
    path: string,
    offset: number,
    contents: Blob,
    onSent: (bytes: number) => void,
    signal: AbortSignal
  ): Promise<void> {
    await this.send('POST', path, 'APPEND', { offset }, contents, onSent, signal);
  }

  private async get<Schema extends GenericSchema>(
    schema: Schema,
    path: string,
    operation: string,
    query: Query = {}
  ): Promise<InferOutput<Schema>> {
    return parsed(schema, json(await (await this.send('GET', path, operation, query)).text()), this.trans);
  }

  /** Ask for an operation on a path. */
  protected async send(
    method: IQuestion['method'],
    path: string,
    operation: string,
    query: Query,
    body?: Blob,
    onUpload?: (bytes: number) => void,
    signal?: AbortSignal
  ): Promise<Response> {
    const question = { method, path: routeOf(path), query: { op: operation, ...query }, body, onUpload, signal };
    return accepted(await this.transport.request(question));
  }
}

/** Return whether trying again later may help: nobody answered, or not now. */
export function mayPass(error: unknown): boolean {
  return error instanceof ApiError && [0, 429, 502, 503, 504].includes(error.status);
}

function info(path: string, status: FileStatus): IFileInfo {
  const { type, length, modificationTime } = status;
  return { path, isFolder: type === 'DIRECTORY', length, modified: modificationTime };
}

function routeOf(path: string): string[] {
  const parts = partsOf(path);
  return ['webhdfs', 'v1', ...(parts.length > 0 ? parts : [''])];
}
