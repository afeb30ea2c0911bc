// The storage in memory, with faults where a test wants them.

import { ApiError } from '../../../console/data/errors';
import { IFileInfo, IFolderPage } from '../../../console/storage/client';
import { join, nameOf, parentOf } from '../../../console/storage/paths';
import { IUploadsClient } from '../../../console/storage/uploads';

export class MemoryStorage implements IUploadsClient {
  readonly files = new Map<string, { bytes: Uint8Array; modified: number }>();
  readonly folders = new Set<string>(['/', '/alice']);
  readonly calls: string[] = [];
  /** Called before each call with its name and path; what it throws is the answer. */
  before: (call: string, path: string) => void | Promise<void> = () => undefined;
  /** Called after each call was carried out; what it throws is the answer all the same. */
  after: (call: string, path: string) => void = () => undefined;

  async find(path: string): Promise<IFileInfo | null> {
    return this.call('find', path, () => {
      const file = this.files.get(path);
      if (file) {
        return { path, isFolder: false, length: file.bytes.length, modified: file.modified };
      }
      return this.folders.has(path) ? { path, isFolder: true, length: 0, modified: 0 } : null;
    });
  }

  async page(path: string): Promise<IFolderPage> {
    const inside = [...this.files.keys()].filter(name => parentOf(name) === path).sort();
    const entries = await Promise.all(inside.map(name => this.find(join(path, nameOf(name)))));
    return { entries: entries.filter(entry => entry !== null), remaining: 0 };
  }

  mkdirs(path: string): Promise<void> {
    return this.call('mkdirs', path, () => void this.folders.add(path));
  }

  async create(path: string, contents: Blob, onSent: (bytes: number) => void, signal: AbortSignal): Promise<void> {
    const bytes = new Uint8Array(await contents.arrayBuffer());
    await this.call('create', path, () => void this.files.set(path, { bytes, modified: 1 }));
    signal.throwIfAborted();
    onSent(bytes.length);
  }

  async append(
    path: string,
    offset: number,
    contents: Blob,
    onSent: (bytes: number) => void,
    signal: AbortSignal
  ): Promise<void> {
    const more = new Uint8Array(await contents.arrayBuffer());
    await this.call('append', path, () => {
      const { bytes } = this.files.get(path)!;
      if (bytes.length !== offset) {
        throw refused(503);
      }
      const all = new Uint8Array(bytes.length + more.length);
      all.set(bytes);
      all.set(more, bytes.length);
      this.files.set(path, { bytes: all, modified: 2 });
    });
    signal.throwIfAborted();
    onSent(more.length);
  }

  read(path: string, length?: number, offset = 0): Promise<Uint8Array<ArrayBuffer>> {
    const end = length === undefined ? undefined : offset + length;
    return this.call('read', path, () => new Uint8Array(this.files.get(path)!.bytes.slice(offset, end)));
  }

  rename(path: string, target: string): Promise<void> {
    return this.call('rename', path, () => {
      this.files.set(target, this.files.get(path)!);
      this.files.delete(path);
    });
  }

  setModified(path: string, modified: number): Promise<void> {
    return this.call('setModified', path, () => void (this.files.get(path)!.modified = modified));
  }

  remove(path: string): Promise<void> {
    return this.call('remove', path, () => void this.files.delete(path));
  }

  private async call<T>(name: string, path: string, act: () => T): Promise<T> {
    this.calls.push(`${name} ${path}`);
    await this.before(name, path);
    const result = act();
    this.after(name, path);
    return result;
  }
}

/** What a question rejects with where the connection breaks off. */
export function broken(): ApiError {
  return new ApiError(0, 'ServerUnreachable', 'the connection broke off');
}

/** A refusal of the storage. */
export function refused(status: number, message = 'no'): ApiError {
  return new ApiError(status, 'AccessControlException', message);
}

/** A file whose bytes are told apart. */
export function file(name: string, length: number, lastModified = 1_700_000_000_000): File {
  const bytes = Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 13)) % 251);
  return new File([bytes], name, { lastModified });
}
