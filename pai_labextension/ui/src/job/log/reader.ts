// Reads one task's log in parts, forwards and backwards, by offset and by time.

import { IHeaders, ILine, linesOf, placeOf } from './lines';

/** Where a log comes from. */
export interface ILogSource {
  /** Read at most `limit` bytes from `offset` on; negative: from the end. */
  read(offset: number, limit: number, timestamps: boolean): Promise<{ headers: IHeaders; body: Uint8Array }>;
}

/** Lines that follow one another, from `start` to before `end`. */
export interface IPart {
  readonly lines: readonly ILine[];
  readonly start: number;
  readonly end: number;
  /** Whether it reaches to where the log ended when it was read, or to its beginning. */
  readonly last: boolean;
}

/** Bytes in which the line is found that a place is in the middle of. */
const LINE = 16 * 1024;
/** Bytes that are read instead of being halved further. */
const NEAR = 32 * 1024;

export class LogReader {
  /** @param task - the number that its lines have */
  constructor(
    private readonly source: ILogSource,
    private readonly task: number
  ) {}

  /** Return how long the log is, in bytes. */
  async size(): Promise<number> {
    const { headers, body } = await this.source.read(-1, 1, false);
    const { offset, notice } = placeOf(headers);
    return offset + Math.max(0, body.length - notice);
  }

  /** Read on from `start`: at most so many bytes, so many lines. */
  async forward(start: number, bytes: number, most: number): Promise<IPart> {
    const { headers, body } = await this.source.read(start, bytes, true);
    const found = linesOf(headers, body, this.task);
    const lines = found.lines.slice(0, most);
    const cut = lines.length < found.lines.length;
    const end = cut ? lines.at(-1)!.end : Math.max(found.end, start);
    // (one whose last bytes are the beginning of a character is at its end, too)
    return { lines, start, end, last: !cut && end - start < bytes - 3 };
  }

  /** Read what is before `end`: at most about so many bytes, so many lines. */
  async backward(end: number, bytes: number, most: number): Promise<IPart> {
    const start = Math.max(0, end - bytes);
    if (start === end) {
      return { lines: [], start, end, last: true };
    }
    const { headers, body } = await this.source.read(start, end - start, true);
    // where the beginning was removed, as much is given of what follows
    let lines = linesOf(headers, body, this.task).lines.filter(line => line.start < end);
    // most often its beginning is not in what was read
    if (start > 0 && lines.length > 1 && !lines[0]!.notice) {
      lines = lines.slice(1);
    }
    lines = lines.slice(-most);
    const first = lines[0]?.start ?? start;
    return { lines, start: first, end, last: first === 0 };
  }

  /** Return where the line begins that a place is in. */
  async lineStart(offset: number): Promise<number> {
    const { lines } = await this.backward(offset, LINE, Infinity);
    const last = lines.at(-1);
    if (last === undefined) {
      return 0;
    }
    // (a line that is longer than what was read has no beginning in it)
    const begins = last.start === 0 || last.start > offset - LINE;
    return last.open && begins ? last.start : last.end;
  }

  /** Return where the first line begins that was not written before `time` (ms since the epoch). */
  async at(time: number): Promise<number> {
    let [low, high] = [0, await this.size()];
    while (high - low > NEAR) {
      const middle = Math.floor((low + high) / 2);
      const { headers, body } = await this.source.read(middle, 1, true);
      const { lines } = linesOf(headers, body, this.task);
      const line = lines.find(({ notice }) => !notice);
      if (line && line.start > middle && line.start >= high) {
        high = middle; // all between them was removed
      } else if (line && line.time < time) {
        low = Math.max(middle, line.start);
      } else {
        high = middle;
      }
    }
    const begin = await this.lineStart(low);
    const { lines, end } = await this.forward(begin, NEAR * 2, Infinity);
    return lines.find(line => line.time >= time)?.start ?? end;
  }

  /** Find the first place at or after `start` that matches; `onStep` is told how far it is, and ends it by false. */
  async find(
    pattern: RegExp,
    start: number,
    backwards: boolean,
    onStep: (offset: number) => boolean
  ): Promise<number | null> {
    const size = await this.size();
    let place = Math.min(start, size);
    while ((backwards ? place > 0 : place < size) && onStep(place)) {
      const begin = backwards ? Math.max(0, place - SEARCHED) : place;
      const end = backwards ? place + OVERLAP : place + SEARCHED + OVERLAP;
      const { headers, body } = await this.source.read(begin, end - begin, false);
      const matches = placesOf(headers, body, pattern).filter(at => (backwards ? at < place : at >= place));
      const match = backwards ? matches.at(-1) : matches[0];
      if (match !== undefined) {
        return match;
      }
      place = backwards ? begin : Math.max(place + SEARCHED, placeOf(headers).offset);
    }
    return null;
  }
}

/** Bytes that are searched at a time, and how many of the next ones belong to a match that begins in them. */
const SEARCHED = 4 * 1024 * 1024;
const OVERLAP = 1024;

/** Each byte is a character, so that places in the text are places in the log. */
const bytewise = new TextDecoder('latin1');

/** Make what finds a text in bytes; letters of ASCII are found whether they are capital or not. */
export function patternOf(text: string): RegExp {
  const characters = Array.from(bytewise.decode(new TextEncoder().encode(text)), character =>
    /[a-z]/i.test(character)
      ? `[${character.toLowerCase()}${character.toUpperCase()}]`
      : character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&')
  );
  return new RegExp(characters.join(''), 'g');
}

function placesOf(headers: IHeaders, body: Uint8Array, pattern: RegExp): number[] {
  const { offset, gap, notice } = placeOf(headers);
  const before = gap ? Math.max(0, gap[0] - offset) : body.length;
  const places = (bytes: Uint8Array, first: number) =>
    Array.from(bytewise.decode(bytes).matchAll(pattern), match => first + match.index);
  return [...places(body.subarray(0, before), offset), ...(gap ? places(body.subarray(before + notice), gap[1]) : [])];
}
