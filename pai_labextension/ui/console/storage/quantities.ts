// How much, how fast and how long, as people read it.

/** Bytes of the largest file that is opened in the browser. */
export const LARGEST_OPENED = 20 * 1024 * 1024;

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** "1.5 MiB"; bytes alone are whole. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** "1:05:09", "2:30", "0:07". */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** How fast something has moved within the last seconds; older moments count for nothing. */
export class Speed {
  /** @param window - ms that are looked back */
  constructor(private readonly window = 5_000) {}

  /** Note that so many bytes have moved in all at a time (ms). */
  note(time: number, bytes: number): void {
    const last = this.samples.at(-1);
    // a new try begins again further back
    if (last && bytes < last.bytes) {
      this.samples.length = 0;
    }
    this.samples.push({ time, bytes });
    while (this.samples.length > 2 && this.samples[1]!.time <= time - this.window) {
      this.samples.shift();
    }
  }

  /** Bytes in a second; 0 where that is not known. */
  get value(): number {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    return first && last && last.time > first.time ? ((last.bytes - first.bytes) * 1000) / (last.time - first.time) : 0;
  }

  private readonly samples: { time: number; bytes: number }[] = [];
}
