// Sends one file to the storage: in pieces, and on from where a connection broke or a page was reloaded.

import { ApiError, UNREACHABLE } from '../data/errors';
import { IFileInfo, IUploadClient, mayPass } from './client';
import { join, nameOf, parentOf, partName } from './paths';

/** Bytes of one request, and of the longest file that is sent whole in one. */
export const PIECE = 8 * 1024 * 1024;
/** How often running sending is tried again that does not get on, and the pauses before it (ms): each is doubled. */
const TRIES = 10;
const PAUSE = 500;
const LONGEST_PAUSE = 5_000;

/** Resolves after so many ms; rejects when the signal says so. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

/** The local file cannot be read, or is no longer what it was. */
export class UnreadableError extends Error {}

/** Return whether a file in the storage need not be sent again: the same length and time of change. */
export function isSame(there: IFileInfo | null | undefined, file: File): boolean {
  return !!there && !there.isFolder && there.length === file.size && there.modified === file.lastModified;
}

/** Where what is there of a file is kept until it is whole. */
export function partOf(file: File, target: string): string {
  return join(parentOf(target), partName(nameOf(target), file.size, file.lastModified));
}

/**
 * Make `target` the same as a file, replacing what is there. It has its name only when it is whole.
 *
 * @param onSent - is told how many bytes of the file are there
 */
export async function sendFile(
  client: IUploadClient,
  file: File,
  target: string,
  onSent: (bytes: number) => void,
  signal: AbortSignal,
  wait: Wait = pause
): Promise<void> {
  const sending = new Sending(client, file, target, onSent, signal);
  let failures = 0;
  let furthest = 0;
  for (;;) {
    try {
      await (file.size <= PIECE ? sending.whole() : sending.inPieces());
      return;
    } catch (error) {
      signal.throwIfAborted();
      await refuseUnreadable(file);
      if (sending.there > furthest) {
        furthest = sending.there;
        failures = 0;
      }
      if (!mayPass(error) || failures >= TRIES) {
        throw error;
      }
      await wait(Math.min(PAUSE * 2 ** failures, LONGEST_PAUSE), signal);
      failures += 1;
    }
  }
}

class Sending {
  constructor(
    private readonly client: IUploadClient,
    private readonly file: File,
    private readonly target: string,
    private readonly onSent: (bytes: number) => void,
    private readonly signal: AbortSignal
  ) {
    this.part = partOf(file, target);
  }

  /** How many bytes the storage had when it was last asked or written to. */
  there = 0;

  async whole(): Promise<void> {
    await this.client.create(this.target, this.file, this.onSent, this.signal);
    await this.client.setModified(this.target, this.file.lastModified);
  }

  async inPieces(): Promise<void> {
    const begun = await this.client.find(this.part);
    if (begun === null && this.there === this.file.size && isSame(await this.client.find(this.target), this.file)) {
      return; // it was put in place, only the answer to that got lost
    }
    this.there = begun === null ? 0 : begun.length;
    if (begun === null || !(await this.isBeginning(begun.length))) {
      this.there = 0;
      await this.client.create(this.part, new Blob(), () => undefined, this.signal);
    }
    this.confirmed = this.there;
    while (this.there < this.file.size) {
      this.onSent(this.there);
      const piece = this.file.slice(this.there, this.there + PIECE);
      await this.client.append(this.part, this.there, piece, sent => this.onSent(this.there + sent), this.signal);
      this.there += piece.size;
      this.confirmed = this.there;
    }
    this.onSent(this.there);
    // what a request that broke off had still under way may have come in between
    const length = (await this.client.find(this.part))?.length;
    if (length !== this.file.size) {
      await this.client.remove(this.part);
      this.there = 0;
      throw new ApiError(0, UNREACHABLE, `${this.part} has ${length} bytes`);
    }
    await this.client.setModified(this.part, this.file.lastModified);
    this.signal.throwIfAborted();
    await this.client.rename(this.part, this.target, true);
  }

  /** Compare what is there with the file: what is not confirmed of it, a piece at most. */
  private async isBeginning(length: number): Promise<boolean> {
    if (length > this.file.size) {
      return false;
    }
    const from = this.confirmed > length ? Math.max(0, length - PIECE) : Math.max(this.confirmed, length - PIECE);
    if (from === length) {
      return true;
    }
    const there = await this.client.read(this.part, length - from, from);
    const here = new Uint8Array(await this.file.slice(from, length).arrayBuffer());
    return there.length === here.length && there.every((byte, index) => byte === here[index]);
  }

  /** Of how many bytes of the part it is known that they are the file's. */
  private confirmed = 0;
  private readonly part: string;
}

async function refuseUnreadable(file: File): Promise<void> {
  try {
    await file.slice(0, 1).arrayBuffer();
  } catch (error) {
    throw new UnreadableError((error as Error).message);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}
