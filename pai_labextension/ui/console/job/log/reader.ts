// Reads one task's log in parts, forwards and backwards, by offset and by time.

import { ILogAnswer, ILogSource } from '../../data/client';

/** A line as it was written. `end`: the offset in the log after its last byte; `open`: its end is still to come. */
export interface ILine {
  /** Which of the logs that are read together. */
  readonly task: number;
  readonly start: number;
  readonly end: number;
  /** ms since the epoch; NaN where that is not known. */
  readonly time: number;
  readonly text: string;
  readonly open: boolean;
  /** Whether it stands for a part that was removed, and is no line of the log. */
  readonly notice: boolean;
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
/** Bytes that are read to know when a line began. */
const TIMED = 256;
/** Lines that are shown before one that is looked for. */
const LINES_BEFORE = 100;

export class LogReader {
  /** @param task - the number that its lines have */
  constructor(
    private readonly source: ILogSource,
    private readonly task: number
  ) {}

  /** Return what is followed to be told of what is written. */
  get subject() {
    return this.source.subject;
  }

  /** Read a piece that was told. */
  told(data: unknown): IPart {
    const { start, text } = data as { start: number; text: string };
    const headers = new Headers({ 'X-Log-Offset': String(start) });
    return this.following(
      { headers, body: Uint8Array.from(text, byte => byte.charCodeAt(0)) },
      start,
      Infinity,
      Infinity
    );
  }

  /** Return how long the log is, in bytes. */
  async size(): Promise<number> {
    const { headers, body } = await this.source.read(-1, 1, false);
    const { offset, notice } = placeOf(headers);
    return offset + Math.max(0, body.length - notice);
  }

  /** Read on from `start`: at most so many bytes, so many lines. */
  async forward(start: number, bytes: number, most: number): Promise<IPart> {
    return this.following(await this.source.read(start, bytes, true), start, bytes, most);
  }

  /** Read on from the first line that did not begin before `time` (ms since the epoch), as `forward`. */
  async since(time: number, bytes: number, most: number): Promise<IPart> {
    const answer = await this.source.since(time, bytes);
    return this.following(answer, placeOf(answer.headers).offset, bytes, most);
  }

  /** Read the end: at most so many bytes, so many lines. */
  async last(bytes: number, most: number): Promise<IPart> {
    const answer = await this.source.read(-bytes, bytes, true);
    const { lines: found, end } = linesOf(answer, this.task);
    const lines = this.whole(found, placeOf(answer.headers).offset).slice(-most);
    const start = lines[0]?.start ?? end;
    return { lines, start, end, last: start === 0 };
  }

  /** Read the line that a place is in, some before it, and what follows: at most about so many bytes, so many lines. */
  async around(offset: number, bytes: number, most: number): Promise<IPart> {
    const from = Math.max(0, offset - LINE);
    const answer = await this.source.read(from, offset - from + bytes, true);
    const { lines: found, end } = linesOf(answer, this.task);
    const isIn = (line: ILine) => !line.notice && line.start <= offset && offset < line.end;
    // (a line that is longer than what is read before the place has its beginning elsewhere)
    const whole = found[0] && isIn(found[0]) ? found : this.whole(found, from);
    const first = Math.max(0, whole.findIndex(isIn) - LINES_BEFORE);
    const lines = whole.slice(first, first + most);
    const cut = lines.at(-1) !== found.at(-1);
    const start = lines[0]?.start ?? offset;
    return { lines, start, end: cut ? lines.at(-1)!.end : Math.max(end, start), last: false };
  }

  /** Read what is before `end`: at most about so many bytes, so many lines. */
  async backward(end: number, bytes: number, most: number): Promise<IPart> {
    const start = Math.max(0, end - bytes);
    if (start === end) {
      return { lines: [], start, end, last: true };
    }
    const answer = await this.source.read(start, end - start, true);
    // where the beginning was removed, as much is given of what follows
    const found = linesOf(answer, this.task).lines.filter(line => line.start < end);
    const lines = this.whole(found, start).slice(-most);
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

  /** Return where the first line begins that did not begin before `time` (ms since the epoch). */
  async at(time: number): Promise<number> {
    return placeOf((await this.source.since(time, 0)).headers).offset;
  }

  /** Return when the line began that a place is in (ms since the epoch); 0 where that is not known. */
  async timeAt(offset: number): Promise<number> {
    const [line] = (await this.forward(await this.lineStart(offset), TIMED, 1)).lines;
    return line && !isNaN(line.time) ? line.time : 0;
  }

  /**
   * Find the first place at or after `start` that matches, or backwards the last one before it.
   *
   * @param onStep - is told how far it is, from 0 to 1; ends it by false
   */
  async find(
    pattern: RegExp,
    start: number,
    backwards: boolean,
    onStep: (done: number) => boolean
  ): Promise<number | null> {
    let step = FIRST_SEARCHED;
    const ahead = backwards ? null : this.source.read(start, step + OVERLAP, false);
    ahead?.catch(() => undefined); // it is waited for below, unless the size cannot be had either
    const size = await this.size();
    const begun = Math.min(start, size);
    const length = Math.max(1, backwards ? begun : size - begun);
    let place = begun;
    for (let next = ahead; backwards ? place > 0 : place < size; next = null, step = SEARCHED) {
      if (!onStep(Math.abs(place - begun) / length)) {
        return null;
      }
      const begin = backwards ? Math.max(0, place - step) : place;
      const end = place + (backwards ? OVERLAP : step + OVERLAP);
      const answer = await (next ?? this.source.read(begin, end - begin, false));
      const match = await placeIn(answer, pattern, place, backwards);
      if (match !== null) {
        return match;
      }
      place = backwards ? begin : Math.max(place + step, placeOf(answer.headers).offset);
    }
    return null;
  }

  private following(answer: ILogAnswer, start: number, bytes: number, most: number): IPart {
    const found = linesOf(answer, this.task);
    const lines = found.lines.slice(0, most);
    const cut = lines.length < found.lines.length;
    const end = cut ? lines.at(-1)!.end : Math.max(found.end, start);
    // (one whose last bytes are the beginning of a character is at its end, too)
    return { lines, start, end, last: !cut && end - start < bytes - 3 };
  }

  /** Leave out the first line of what was read from `start` on: most often its beginning is not in it. */
  private whole(lines: readonly ILine[], start: number): readonly ILine[] {
    return start > 0 && lines.length > 1 && !lines[0]!.notice ? lines.slice(1) : lines;
  }
}

/** Bytes that are searched at first, and from then on at a time: what is near is found without reading much. */
const FIRST_SEARCHED = 1024 * 1024;
const SEARCHED = 4 * FIRST_SEARCHED;
/** Of the bytes after these so many belong to a match that begins in them. */
const OVERLAP = 1024;
/** Bytes after which whatever else the page has to do comes first. */
const PIECE = 256 * 1024;

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

/** Find the first match at or after `place`, or the last one before it; piece by piece. */
async function placeIn(
  { headers, body }: ILogAnswer,
  pattern: RegExp,
  place: number,
  backwards: boolean
): Promise<number | null> {
  const { offset, gap, notice } = placeOf(headers);
  const before = gap ? Math.max(0, gap[0] - offset) : body.length;
  const parts = piecesOf(body.subarray(0, before), offset);
  if (gap) {
    parts.push(...piecesOf(body.subarray(before + notice), gap[1]));
  }
  for (const { bytes, first, length } of backwards ? parts.reverse() : parts) {
    await othersFirst();
    let last: number | null = null;
    for (const match of bytewise.decode(bytes).matchAll(pattern)) {
      const at = first + match.index;
      if (match.index >= length || (backwards && at >= place)) {
        break;
      }
      if (!backwards && at >= place) {
        return at;
      }
      last = at;
    }
    if (backwards && last !== null) {
      return last;
    }
  }
  return null;
}

interface IPiece {
  /** Where in the log it begins. */
  readonly first: number;
  readonly bytes: Uint8Array;
  /** In so many bytes of it a match may begin. */
  readonly length: number;
}

function piecesOf(bytes: Uint8Array, first: number): IPiece[] {
  return Array.from({ length: Math.ceil(bytes.length / PIECE) }, (_, number) => ({
    first: first + number * PIECE,
    bytes: bytes.subarray(number * PIECE, (number + 1) * PIECE + OVERLAP),
    length: PIECE
  }));
}

/** Let the page do what else it has to do. */
function othersFirst(): Promise<void> {
  return new Promise(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Bytes before each line where times are asked for: "2026-01-02T03:04:05.678Z ". */
const STAMP_LENGTH = 25;
const NEWLINE = 10;

/** What the headers of an answer tell: at which offset it begins, and what was left out of it. */
function placeOf(headers: ILogAnswer['headers']): { offset: number; gap: [number, number] | null; notice: number } {
  const removed = headers.get('X-Log-Removed')?.split('-').map(Number);
  return {
    offset: Number(headers.get('X-Log-Offset')),
    gap: removed ? [removed[0]!, removed[1]!] : null,
    notice: Number(headers.get('X-Log-Notice') ?? 0)
  };
}

/** Take an answer with times apart into lines; `end` is the offset after the last byte that is in one of them. */
function linesOf({ headers, body }: ILogAnswer, task: number): { lines: ILine[]; end: number } {
  const { offset, gap, notice } = placeOf(headers);
  const decoder = new TextDecoder();
  const lines: ILine[] = [];
  let at = 0;
  let place = offset;
  let gapAhead = gap;
  while (at < body.length || gapAhead) {
    if (gapAhead && place >= gapAhead[0]) {
      const text = decoder.decode(body.subarray(at, at + notice)).trim();
      const time = lines.at(-1)?.time ?? NaN;
      lines.push({ task, start: gapAhead[0], end: gapAhead[1], time, text, open: false, notice: true });
      at += notice;
      place = gapAhead[1];
      gapAhead = null;
      continue;
    }
    if (at >= body.length) {
      break;
    }
    const time = Date.parse(decoder.decode(body.subarray(at, at + STAMP_LENGTH - 1)));
    at += STAMP_LENGTH;
    const found = body.indexOf(NEWLINE, at);
    let stop = found < 0 ? body.length : found + 1;
    if (gapAhead) {
      stop = Math.min(stop, at + gapAhead[0] - place);
    }
    const open = body[stop - 1] !== NEWLINE && !(gapAhead && place + stop - at >= gapAhead[0]);
    // what a character lacks comes with the next part
    const whole = open && stop === body.length ? stop - unfinished(body.subarray(at, stop)) : stop;
    if (whole > at) {
      const text = decoder.decode(body.subarray(at, whole)).replace(/\r?\n$/, '');
      lines.push({ task, start: place, end: place + whole - at, time, text, open, notice: false });
      place += whole - at;
    }
    at = stop;
  }
  return { lines, end: place };
}

/** Return how many bytes at the end are the beginning of a character in UTF-8. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) {
      return 0;
    }
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? back : 0;
    }
  }
  return 0;
}
