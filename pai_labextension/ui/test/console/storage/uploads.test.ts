// @vitest-environment node

import { beforeEach, describe, expect, it } from 'vitest';

import { chosenFiles } from '../../../console/storage/dropped';
import { PIECE } from '../../../console/storage/sending';
import { Conflict, Uploads } from '../../../console/storage/uploads';
import { file, MemoryStorage, refused } from './memoryStorage';

describe('Uploads', () => {
  let storage: MemoryStorage;
  let uploads: Uploads;
  let asked: (readonly string[])[];
  let answer: Conflict;
  let arrived: string[];

  const states = () => uploads.items.map(item => item.state);
  const over = async () => {
    while (uploads.active) {
      await new Promise(resolve => setTimeout(resolve, 1));
    }
  };

  beforeEach(() => {
    storage = new MemoryStorage();
    asked = [];
    answer = null;
    arrived = [];
    const ask = async (paths: readonly string[]) => {
      asked.push(paths);
      return answer;
    };
    uploads = new Uploads(
      storage,
      ask,
      () => 0,
      async () => undefined
    );
    uploads.arrived.connect(path => void arrived.push(path));
  });

  it('bring files to their places, and folders without files too', async () => {
    const files = [
      { file: file('a', 3), path: 'data/a' },
      { file: file('b', 4), path: 'data/inner/b' }
    ];
    await uploads.add({ files, folders: ['data/empty'] }, '/alice');
    await over();
    expect([...storage.files.keys()].sort()).toEqual(['/alice/data/a', '/alice/data/inner/b']);
    expect(storage.folders.has('/alice/data/empty')).toBe(true);
    expect(arrived.sort()).toEqual(['/alice/data/a', '/alice/data/empty', '/alice/data/inner/b']);
    expect(uploads.totals).toMatchObject({ files: 2, filesOver: 2, failed: 0, bytes: 7, bytesOver: 7 });
  });

  it('run three at a time', async () => {
    let most = 0;
    const release: (() => void)[] = [];
    storage.before = call => {
      most = Math.max(most, uploads.items.filter(item => item.state === 'running').length);
      return call === 'create' ? new Promise(resolve => release.push(resolve)) : undefined;
    };
    await uploads.add(chosenFiles(['a', 'b', 'c', 'd', 'e'].map(name => file(name, 1))), '/alice');
    expect(states()).toEqual(['running', 'running', 'running', 'waiting', 'waiting']);
    while (uploads.active) {
      release.splice(0).forEach(go => go());
      await new Promise(resolve => setTimeout(resolve, 1));
    }
    expect(most).toBe(3);
    expect(states()).toEqual(Array(5).fill('done'));
  });

  it('leave out what is there already', async () => {
    const same = file('a', 3, 5);
    storage.files.set('/alice/a', { bytes: new Uint8Array(3), modified: 5 });
    await uploads.add(chosenFiles([same]), '/alice');
    expect(states()).toEqual(['same']);
    expect(asked).toEqual([]);
    expect(uploads.totals).toMatchObject({ filesOver: 1, bytesOver: 3 });
  });

  it.each([
    ['replace', 3, ['done', 'done']],
    ['keep', 9, ['done']],
    [null, 9, []]
  ] as const)('ask before they replace: %s', async (given, length, expected) => {
    storage.files.set('/alice/a', { bytes: new Uint8Array(9), modified: 5 });
    answer = given;
    await uploads.add(chosenFiles([file('a', 3), file('b', 1)]), '/alice');
    await over();
    expect(asked).toEqual([['/alice/a']]);
    expect(storage.files.get('/alice/a')!.bytes.length).toBe(length);
    expect(states()).toEqual(expected);
  });

  it('ask once for many files of a folder, which is listed instead of asked file by file', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    names.forEach(name => storage.files.set(`/alice/${name}`, { bytes: new Uint8Array(9), modified: 5 }));
    answer = 'keep';
    await uploads.add(chosenFiles(names.map(name => file(name, 1))), '/alice');
    expect(asked).toEqual([names.map(name => `/alice/${name}`)]);
  });

  it('tell why one failed, go on with the others, and try it again when asked', async () => {
    let full = true;
    storage.before = (call, path) => {
      if (full && call === 'create' && path === '/alice/a') {
        throw refused(507, 'The storage is full.');
      }
    };
    await uploads.add(chosenFiles([file('a', 1), file('b', 1)]), '/alice');
    await over();
    expect(states()).toEqual(['failed', 'done']);
    expect(uploads.items[0]!.error).toMatchObject({ message: 'The storage is full.' });
    full = false;
    uploads.retry(uploads.items);
    await over();
    expect(states()).toEqual(['done', 'done']);
  });

  it('that are cancelled leave nothing behind', async () => {
    const large = file('a', PIECE + 1);
    let begun: () => void = () => undefined;
    const appending = new Promise<void>(resolve => (begun = resolve));
    storage.after = call => {
      if (call === 'append') {
        begun();
        uploads.cancel(uploads.items[0]!);
      }
    };
    await uploads.add(chosenFiles([large]), '/alice');
    await appending;
    while (storage.files.size > 0) {
      await new Promise(resolve => setTimeout(resolve, 1));
    }
    expect(states()).toEqual(['cancelled']);
    expect(arrived).toEqual([]);
  });

  it('are forgotten when they are over and somebody says so', async () => {
    await uploads.add(chosenFiles([file('a', 1)]), '/alice');
    await over();
    uploads.clear();
    expect(uploads.items).toEqual([]);
  });
});
