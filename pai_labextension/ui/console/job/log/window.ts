// The part of one log, or of several in order of time, that is in the browser: it moves, and never grows.

import { fewAtOnce } from '../../data/store';
import { ILine, IPart, LogReader } from './reader';

/** Lines and characters that are kept at most. */
const MOST_LINES = 1_500;
const MOST_TEXT = 1_000_000;
/** Bytes and lines that are read at a time, of all logs together. */
const STEP_BYTES = 64 * 1024;
const STEP_LINES = 400;
/** Bytes of each log that are read at a time at least. */
const LEAST_BYTES = 4 * 1024;
/** Characters after which a line without an end goes on in another one. */
const LONGEST_LINE = 64 * 1024;
/** Logs that are asked for at the same time: a browser has few connections to one server. */
const AT_ONCE = 3;

export class LogWindow {
  constructor(
    private readonly readers: readonly LogReader[],
    private readonly most: { lines: number; text: number } = { lines: MOST_LINES, text: MOST_TEXT }
  ) {
    this.tops = readers.map(() => 0);
    this.bottoms = readers.map(() => 0);
  }

  /** What is shown, the oldest first. */
  get lines(): readonly ILine[] {
    return this._lines;
  }

  /** Whether nothing was written before, or after it. */
  get atStart(): boolean {
    return this.tops.every(top => top === 0);
  }

  get atEnd(): boolean {
    return this._atEnd;
  }

  /** Where the first of the logs begins to be shown, and how long it is, in bytes. */
  get place(): { top: number; size: number } {
    return { top: this.tops[0] ?? 0, size: Math.max(this.size, this.bottoms[0] ?? 0) };
  }

  /** Show the end. */
  async toEnd(): Promise<void> {
    const parts = await this.each(reader => reader.last(this.bytes, STEP_LINES));
    this.begin(parts.map(({ end }) => end));
    this.takeBefore(parts);
    this._atEnd = true;
  }

  /** Show the beginning. */
  async toStart(): Promise<void> {
    this.begin(this.readers.map(() => 0));
    await this.after();
  }

  /** Show what was written at a place of the first log, and at that time in the others. */
  async toOffset(offset: number): Promise<void> {
    const [reader] = this.readers;
    if (reader && this.readers.length === 1) {
      this.begin([await reader.lineStart(offset)]);
      await this.after();
    }
  }

  /** Show what was written at a time (ms since the epoch). */
  async toTime(time: number): Promise<void> {
    const parts = await this.each(reader => reader.since(time, this.bytes, STEP_LINES));
    this.begin(parts.map(({ start }) => start));
    this.takeAfter(parts);
  }

  /** Show the line of one log that a place is in, and the others at its time; return it. */
  async toLine(task: number, offset: number): Promise<ILine | undefined> {
    const isIt = (line: ILine) => line.task === task && line.start <= offset && offset < line.end;
    if (this.readers.length === 1) {
      const part = await this.readers[0]!.around(offset, this.bytes, STEP_LINES);
      this.begin([part.start]);
      this.takeAfter([part]);
      return this._lines.find(isIt);
    }
    const start = await this.readers[task]!.lineStart(offset);
    const { lines } = await this.readers[task]!.forward(start, LEAST_BYTES, 1);
    const time = lines[0]?.time ?? 0;
    this.begin(await this.each((reader, index) => (index === task ? Promise.resolve(start) : reader.at(time))));
    await this.after();
    return this._lines.find(isIt);
  }

  /** Read what comes before what is shown. */
  async before(): Promise<void> {
    const parts = await this.each((reader, index) => reader.backward(this.tops[index]!, this.bytes, STEP_LINES));
    this.takeBefore(parts);
  }

  /** Read what comes after what is shown; return whether there was something. */
  async after(): Promise<boolean> {
    return this.takeAfter(
      await this.each((reader, index) => reader.forward(this.bottoms[index]!, this.bytes, STEP_LINES))
    );
  }

  /** Where each log goes on after what is shown. */
  get ends(): readonly number[] {
    return this.bottoms;
  }

  /** Take a piece of one log that was told; return whether it has changed what is shown. */
  async take(index: number, part: IPart): Promise<boolean> {
    const bottom = this.bottoms[index]!;
    if (part.end <= bottom) {
      return false; // it was read meanwhile
    }
    if (part.start < bottom) {
      return this.after();
    }
    if (part.start > bottom) {
      // what is between was written faster than anybody reads
      if (this.readers.length > 1) {
        await this.toEnd();
        return true;
      }
      const lines = part.lines.slice(1);
      this.begin([lines[0]?.start ?? part.end]);
      return this.takeAfter([{ ...part, lines }]);
    }
    const nothing = { lines: [], start: 0, end: 0, last: true };
    return this.takeAfter(this.readers.map((_, other) => (other === index ? part : nothing)));
  }

  /** Ask how long the first log is. */
  async measure(): Promise<void> {
    this.size = (await this.readers[0]?.size()) ?? 0;
  }

  /** Return where to begin to search: in each log what begins at or after this line. */
  placesFrom(index: number): number[] {
    const places = [...this.bottoms];
    for (const line of this._lines.slice(Math.max(0, index)).reverse()) {
      places[line.task] = line.start;
    }
    return places;
  }

  private takeBefore(parts: readonly IPart[]): void {
    // of what is older than the first line of one of them, that one's lines are not here yet
    const known = Math.max(...parts.map(part => (part.last ? -Infinity : Math.min(...times(part)))));
    const found = merged(parts.map(({ lines }) => lines.slice(lines.findLastIndex(line => line.time < known) + 1)));
    const kept = found.slice(-STEP_LINES);
    for (const line of [...kept].reverse()) {
      this.tops[line.task] = line.start;
    }
    this._lines = [...kept, ...this._lines];
    this.trim(false);
  }

  private takeAfter(parts: readonly IPart[]): boolean {
    const known = Math.min(...parts.map(part => (part.last ? Infinity : Math.max(...times(part)))));
    const found = merged(
      parts.map(({ lines }) => {
        const later = lines.findIndex(line => line.time > known);
        return later < 0 ? lines : lines.slice(0, later);
      })
    );
    const kept = this.readers.length > 1 ? found.slice(0, STEP_LINES) : found;
    this._atEnd = parts.every(part => part.last) && kept.length === found.length;
    if (kept.length === 0) {
      return false;
    }
    const lines = [...this._lines];
    for (const line of kept) {
      this.bottoms[line.task] = line.end;
      append(lines, line);
    }
    this._lines = lines;
    this.trim(true);
    return true;
  }

  private get bytes(): number {
    return Math.max(LEAST_BYTES, Math.floor(STEP_BYTES / Math.max(1, this.readers.length)));
  }

  private begin(places: readonly number[]): void {
    this._lines = [];
    this.tops = [...places];
    this.bottoms = [...places];
    this.size = Math.max(this.size, places[0] ?? 0);
    this._atEnd = false;
  }

  /** Let go of what is too much, at the beginning or at the end. */
  private trim(first: boolean): void {
    let text = this._lines.reduce((sum, line) => sum + line.text.length, 0);
    const lines = this._lines;
    let [from, to] = [0, lines.length];
    while (to - from > 1 && (to - from > this.most.lines || text > this.most.text)) {
      const line = lines[first ? from : to - 1]!;
      text -= line.text.length;
      if (first) {
        this.tops[line.task] = line.end;
        from += 1;
      } else {
        this.bottoms[line.task] = line.start;
        to -= 1;
        this._atEnd = false;
      }
    }
    this._lines = lines.slice(from, to);
  }

  /** Ask each reader, a few at a time. */
  private async each<Answer>(question: (reader: LogReader, index: number) => Promise<Answer>): Promise<Answer[]> {
    const answers: Answer[] = [];
    await fewAtOnce(this.readers.entries(), AT_ONCE, async ([index, reader]) => {
      answers[index] = await question(reader, index);
    });
    return answers;
  }

  private _lines: readonly ILine[] = [];
  private _atEnd = false;
  private tops: number[];
  private bottoms: number[];
  private size = 0;
}

/** Put lines of several logs into the order of their times; those of one log stay as they are. */
export function merged(logs: readonly (readonly ILine[])[]): ILine[] {
  if (logs.length === 1) {
    return [...logs[0]!];
  }
  const timed = logs.flatMap(lines => {
    let time = -Infinity;
    return lines.map(line => ({ line, time: (time = Math.max(time, line.time || time)) }));
  });
  return timed.sort((a, b) => (a.time === b.time ? 0 : a.time - b.time)).map(({ line }) => line);
}

/** Add a line, or what one lacked that had no end yet. */
function append(lines: ILine[], line: ILine): void {
  const last = lines.findLastIndex(({ task }) => task === line.task);
  const before = lines[last];
  // progress bars write one line anew for hours: what was overwritten is let go
  const text = (before?.text ?? '') + line.text;
  const overwritten = text.lastIndexOf('\r', text.length - 2);
  if (before?.open && before.end === line.start && !line.notice) {
    const kept = text.length > LONGEST_LINE && overwritten > 0 ? text.slice(overwritten + 1) : text;
    if (kept.length <= LONGEST_LINE) {
      lines[last] = { ...before, end: line.end, text: kept, open: line.open };
      return;
    }
  }
  lines.push(line);
}

function times({ lines }: IPart): number[] {
  return lines.map(line => line.time).filter(time => !isNaN(time));
}
