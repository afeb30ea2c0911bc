// A part of a task's log as lines, each with its place in the log and when it began.

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

/** The part of an answer's headers that is read. */
export interface IHeaders {
  get(name: string): string | null;
}

/** Bytes before each line where times are asked for: "2026-01-02T03:04:05.678Z ". */
const STAMP_LENGTH = 25;
const NEWLINE = 10;

/** What the headers of an answer tell: at which offset it begins, and what was left out of it. */
export function placeOf(headers: IHeaders): { offset: number; gap: [number, number] | null; notice: number } {
  const removed = headers.get('X-Log-Removed')?.split('-').map(Number);
  return {
    offset: Number(headers.get('X-Log-Offset')),
    gap: removed ? [removed[0]!, removed[1]!] : null,
    notice: Number(headers.get('X-Log-Notice') ?? 0)
  };
}

/** Take an answer with times apart into lines; `end` is the offset after the last byte that is in one of them. */
export function linesOf(headers: IHeaders, body: Uint8Array, task: number): { lines: ILine[]; end: number } {
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
export function unfinished(bytes: Uint8Array): number {
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
