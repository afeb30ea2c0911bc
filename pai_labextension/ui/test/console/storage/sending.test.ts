// @vitest-environment node

import { beforeEach, describe, expect, it } from 'vitest';

import { partName } from '../../../console/storage/paths';
import { PIECE, sendFile } from '../../../console/storage/sending';
import { broken, file, MemoryStorage, refused } from './memoryStorage';

const TARGET = '/alice/model.bin';
const large = file('model.bin', 2 * PIECE + 5);
const part = `/alice/${partName('model.bin', large.size, large.lastModified)}`;

describe('sendFile', () => {
  let storage: MemoryStorage;
  let controller: AbortController;
  let sent: number[];
  let waits: number[];

  const send = (one = large) =>
    sendFile(
      storage,
      one,
      TARGET,
      bytes => sent.push(bytes),
      controller.signal,
      async ms => void waits.push(ms)
    );

  const expectWhole = async (one = large) => {
    const there = storage.files.get(TARGET)!;
    expect(Buffer.compare(there.bytes, Buffer.from(await one.arrayBuffer()))).toBe(0);
    expect(there.modified).toBe(one.lastModified);
    expect([...storage.files.keys()]).toEqual([TARGET]);
  };

  beforeEach(() => {
    storage = new MemoryStorage();
    controller = new AbortController();
    sent = [];
    waits = [];
  });

  it('sends a small file whole', async () => {
    const small = file('model.bin', 10);
    await send(small);
    await expectWhole(small);
    expect(storage.calls).toEqual([`create ${TARGET}`, `setModified ${TARGET}`]);
  });

  it('sends a large one in pieces, under another name until it is whole', async () => {
    storage.after = (_, path) => expect(storage.files.has(TARGET) ? path : part).toBe(part);
    await send();
    await expectWhole();
    expect(storage.calls.filter(call => call.startsWith('append'))).toHaveLength(3);
    expect(sent.at(-1)).toBe(large.size);
  });

  it('goes on with what is there', async () => {
    const begun = new Uint8Array(await large.slice(0, PIECE).arrayBuffer());
    storage.files.set(part, { bytes: begun, modified: 1 });
    await send();
    await expectWhole();
    expect(storage.calls.filter(call => call.startsWith('append'))).toHaveLength(2);
    expect(Math.min(...sent)).toBe(PIECE);
  });

  it('tries again where the connection breaks, and begins to count anew when it got on', async () => {
    let appends = 0;
    storage.before = call => {
      // each piece needs seven tries: more in all than there may be in vain
      if (call === 'append' && ++appends % 7 !== 0) {
        throw broken();
      }
    };
    await send();
    await expectWhole();
    expect(waits.slice(0, 6)).toEqual([500, 1000, 2000, 4000, 5000, 5000]);
  });

  it('gives up when it does not get on, and keeps what is there', async () => {
    storage.before = call => {
      if (call === 'append' && (storage.files.get(part)?.bytes.length ?? 0) > 0) {
        throw broken();
      }
    };
    await expect(send()).rejects.toThrow('broke off');
    expect(storage.files.get(part)!.bytes.length).toBe(PIECE);
    expect(storage.files.has(TARGET)).toBe(false);
  });

  it('notices that a piece came although its answer got lost', async () => {
    let lost = 0;
    storage.after = call => {
      if (call === 'append' && lost++ === 0) {
        throw broken();
      }
    };
    await send();
    await expectWhole();
    expect(storage.calls.filter(call => call.startsWith('append'))).toHaveLength(3);
  });

  it('notices that the file was put in place although the answer got lost', async () => {
    let lost = 0;
    storage.after = call => {
      if (call === 'rename' && lost++ === 0) {
        throw broken();
      }
    };
    await send();
    await expectWhole();
    expect(storage.calls.filter(call => call.startsWith('append'))).toHaveLength(3);
  });

  it('begins anew where more came than there is', async () => {
    let late = 0;
    storage.after = (call, path) => {
      if (call === 'append' && late++ === 0) {
        // what an earlier request had still under way
        const { bytes, modified } = storage.files.get(path)!;
        storage.files.set(path, { bytes: Buffer.concat([bytes, Buffer.from('late')]), modified });
      }
    };
    await send();
    await expectWhole();
    expect(storage.calls.filter(call => call === `create ${part}`)).toHaveLength(2);
  });

  it('begins anew where the end of what is there is not of the file', async () => {
    const begun = new Uint8Array(await large.slice(0, PIECE + 1).arrayBuffer());
    storage.files.set(part, { bytes: begun.map((byte, at) => (at < PIECE ? byte : 255)), modified: 1 });
    await send();
    await expectWhole();
    expect(storage.calls).toContain(`create ${part}`);
  });

  it('never mixes in what a broken connection brings late', async () => {
    let appends = 0;
    storage.before = async (call, path) => {
      if (call === 'append' && ++appends === 2) {
        // the first one lands when the second has been decided on
        const { bytes, modified } = storage.files.get(path)!;
        const late = new Uint8Array(await large.slice(0, 1000).arrayBuffer());
        storage.files.set(path, { bytes: Buffer.concat([bytes, late]), modified });
      }
      if (call === 'append' && appends === 1) {
        throw broken();
      }
    };
    await send();
    await expectWhole();
  });

  it('does not try again what is refused', async () => {
    storage.before = call => {
      if (call === 'append') {
        throw refused(403, 'You may not.');
      }
    };
    await expect(send()).rejects.toThrow('You may not.');
    expect(waits).toEqual([]);
  });

  it('tries again when the storage is not ready', async () => {
    let asked = 0;
    storage.before = () => {
      if (asked++ === 0) {
        throw refused(503);
      }
    };
    await send();
    await expectWhole();
  });

  it('says that a file cannot be read any more', async () => {
    const gone = file('model.bin', 10);
    gone.slice = () => ({ arrayBuffer: () => Promise.reject(new Error('gone')) }) as unknown as Blob;
    storage.before = () => {
      throw broken();
    };
    await expect(send(gone)).rejects.toMatchObject({ message: 'gone' });
    expect(waits).toEqual([]);
  });

  it('ends when it is cancelled, and puts nothing in place', async () => {
    storage.before = call => {
      if (call === 'append') {
        controller.abort();
      }
    };
    await expect(send()).rejects.toMatchObject({ name: 'AbortError' });
    expect(storage.files.has(TARGET)).toBe(false);
  });
});
