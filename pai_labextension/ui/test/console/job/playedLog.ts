// A log in memory that answers as the scheduler does: times before lines, a part that was removed.

import { ILogSource } from '../../../console/data/client';

const encoder = new TextEncoder();

export class PlayedLog implements ILogSource {
  /** How many bytes were asked for in all, and by how many questions. */
  asked = 0;
  questions = 0;
  /** Offsets of what was removed. */
  gap: readonly [number, number] | null = null;

  /** @param stamp - the time (ms) of a line by its number */
  constructor(
    text: string,
    private readonly stamp: (line: number) => number = line => line * 1000
  ) {
    this.bytes = encoder.encode(text);
    this.starts = startsOf(this.bytes);
  }

  get size(): number {
    return this.bytes.length;
  }

  write(text: string): void {
    this.bytes = joined([this.bytes, encoder.encode(text)]);
    this.starts = startsOf(this.bytes);
  }

  async read(offset: number, limit: number, timestamps: boolean) {
    this.asked += limit;
    this.questions += 1;
    const { bytes, gap } = this;
    let start = offset < 0 ? Math.max(0, bytes.length + offset) : Math.min(offset, bytes.length);
    let end = Math.min(bytes.length, start + limit);
    const headers = new Headers();
    const parts: Uint8Array[] = [];
    if (gap && start < gap[1] && end > Math.max(gap[0], start)) {
      const notice = encoder.encode(`${start < gap[0] && bytes[gap[0] - 1] !== 10 ? '\n' : ''}[left out]\n`);
      headers.set('X-Log-Removed', gap.join('-'));
      headers.set('X-Log-Notice', String(notice.length));
      if (start < gap[0]) {
        parts.push(this.piece(start, gap[0], timestamps));
      } else {
        end = Math.min(end + gap[1] - start, bytes.length);
        start = gap[1];
      }
      parts.push(notice, this.piece(gap[1], Math.max(end, gap[1]), timestamps));
    } else {
      parts.push(this.piece(start, end, timestamps));
    }
    headers.set('X-Log-Offset', String(start));
    return { headers, body: joined(parts) };
  }

  async since(time: number, limit: number) {
    const line = this.starts.findIndex((start, number) => {
      const kept = !this.gap || start < this.gap[0] || start >= this.gap[1];
      return kept && this.stamp(number) >= time;
    });
    return this.read(line < 0 ? this.size : this.starts[line]!, limit, true);
  }

  private piece(start: number, end: number, timestamps: boolean): Uint8Array {
    const { bytes } = this;
    if (!timestamps) {
      return bytes.subarray(start, end);
    }
    const parts: Uint8Array[] = [];
    let number = this.starts.findLastIndex(line => line <= start);
    for (let at = start; at < end;) {
      const found = bytes.indexOf(10, at);
      const stop = found < 0 ? end : Math.min(end, found + 1);
      const time = new Date(this.stamp(number)).toISOString();
      parts.push(encoder.encode(`${time} `), bytes.subarray(at, stop));
      at = stop;
      number += 1;
    }
    return joined(parts);
  }

  private bytes: Uint8Array;
  /** Where each line begins. */
  private starts: number[];
}

function startsOf(bytes: Uint8Array): number[] {
  const starts = [0];
  for (let found = bytes.indexOf(10); found >= 0; found = bytes.indexOf(10, found + 1)) {
    starts.push(found + 1);
  }
  return starts;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
