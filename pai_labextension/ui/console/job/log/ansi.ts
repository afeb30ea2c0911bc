// A line of output as a terminal shows it: what a carriage return overwrites is gone, colours are colours. (Libraries
// for escape sequences make HTML of colours, and leave progress bars as hundreds of texts behind one another.)

import { ILine } from './reader';

/** How characters look; colours are names of JupyterLab's (`red`, `red-intense`) or CSS's (`rgb(…)`). */
export interface ILook {
  readonly fg?: string;
  readonly bg?: string;
  readonly bold?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
}

/** Characters that look alike. */
export interface IRun {
  readonly text: string;
  readonly look: ILook;
}

/** How characters look before anything is said of it. */
const PLAIN: ILook = {};
const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
/** Escape sequences, of which colours and erasing in the line are carried out; single controls; text. */
const TOKEN =
  /\x1b\[(?<numbers>[0-9;:]*)(?<kind>[mKCDG])|\x1b\[[0-?]*[ -/]*(?:[@-~]|$)|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_=>c78]?|(?<control>[\r\b])|[\x00-\x08\x0b-\x1f\x7f]|(?<text>[^\x00-\x08\x0b-\x1f\x7f]+)/g;

/** Return what is seen of a line; `before`: how characters looked at the end of the line before it. */
export function shown(line: string, before: ILook = PLAIN): IRun[] {
  // most lines have nothing of this
  if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(line)) {
    return line === '' ? [] : [{ text: line, look: before }];
  }
  const cells: (readonly [character: string, look: ILook])[] = [];
  let look = before;
  let cursor = 0;
  for (const { groups } of line.matchAll(TOKEN)) {
    const { numbers, kind, control, text } = groups!;
    const number = Math.min(Number(numbers) || 1, 10_000);
    if (text !== undefined) {
      for (const character of text) {
        while (cells.length < cursor) {
          cells.push([' ', PLAIN]);
        }
        cells[cursor] = [character, look];
        cursor += 1;
      }
    } else if (control === '\r') {
      cursor = 0;
    } else if (control === '\b' || kind === 'D') {
      cursor = Math.max(0, cursor - (control ? 1 : number));
    } else if (kind === 'C') {
      cursor += number;
    } else if (kind === 'G') {
      cursor = number - 1;
    } else if (kind === 'm') {
      look = dressed(look, numbers ?? '');
    } else if (kind === 'K') {
      erase(cells, cursor, numbers ?? '');
    }
  }
  return runsOf(cells);
}

/** Return how characters look after a line: a colour that is not taken back goes on in the next one. */
function lookAfter(line: string, before: ILook): ILook {
  if (!line.includes('\x1b')) {
    return before;
  }
  let look = before;
  for (const { groups } of line.matchAll(TOKEN)) {
    look = groups!.kind === 'm' ? dressed(look, groups!.numbers ?? '') : look;
  }
  return look;
}

/** Return what is seen of a line, without colours. */
export function plain(line: string): string {
  return shown(line)
    .map(({ text }) => text)
    .join('');
}

function erase(cells: (readonly [string, ILook])[], cursor: number, what: string): void {
  if (what === '1' || what === '2') {
    cells.fill([' ', PLAIN], 0, Math.min(cursor, cells.length));
  }
  if (what !== '1') {
    cells.length = Math.min(cells.length, cursor);
  }
}

function runsOf(cells: readonly (readonly [string, ILook])[]): IRun[] {
  const runs: { text: string; look: ILook }[] = [];
  for (const [character, look] of cells) {
    const last = runs.at(-1);
    if (last?.look === look) {
      last.text += character;
    } else {
      runs.push({ text: character, look });
    }
  }
  return runs;
}

/** Return how characters look after these numbers: ECMA-48, "select graphic rendition". */
function dressed(before: ILook, numbers: string): ILook {
  const codes = numbers.split(/[;:]/).map(Number);
  let look: ILook = before;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at]!;
    if (code === 0) {
      look = PLAIN;
    } else if (code === 1) {
      look = { ...look, bold: true };
    } else if (code === 4) {
      look = { ...look, underline: true };
    } else if (code === 7) {
      look = { ...look, inverse: true };
    } else if (code === 22) {
      look = without(look, 'bold');
    } else if (code === 24) {
      look = without(look, 'underline');
    } else if (code === 27) {
      look = without(look, 'inverse');
    } else if (code === 39) {
      look = without(look, 'fg');
    } else if (code === 49) {
      look = without(look, 'bg');
    } else if (code === 38 || code === 48) {
      const length = codes[at + 1] === 5 ? 2 : codes[at + 1] === 2 ? 4 : 0;
      const colour = length === 2 ? indexed(codes[at + 2] ?? 0) : rgb(codes.slice(at + 2, at + 5));
      if (length > 0) {
        look = code === 38 ? { ...look, fg: colour } : { ...look, bg: colour };
      }
      at += length;
    } else {
      const [tens, ones] = [Math.floor(code / 10), code % 10];
      const name = COLOURS[ones];
      if (name !== undefined && [3, 4, 9, 10].includes(tens)) {
        const colour = tens >= 9 ? `${name}-intense` : name;
        look = tens === 3 || tens === 9 ? { ...look, fg: colour } : { ...look, bg: colour };
      }
    }
  }
  return look;
}

function without(look: ILook, part: keyof ILook): ILook {
  const rest = { ...look };
  delete rest[part];
  return rest;
}

/** Return one of 256 colours: 16 with names, a cube of 6 × 6 × 6, 24 greys. */
function indexed(number: number): string {
  if (number < 16) {
    const name = COLOURS[number % 8]!;
    return number < 8 ? name : `${name}-intense`;
  }
  if (number >= 232) {
    const grey = 8 + 10 * (number - 232);
    return rgb([grey, grey, grey]);
  }
  const cube = number - 16;
  const level = (value: number) => (value === 0 ? 0 : 55 + 40 * value);
  return rgb([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level));
}

function rgb(parts: readonly number[]): string {
  const [red = 0, green = 0, blue = 0] = parts.map(part => Math.max(0, Math.min(255, part || 0)));
  return `rgb(${red} ${green} ${blue})`;
}

/**
 * With which colours each line begins: those with which the line before it in the same log ended.
 *
 * Remembers what it found of lines, so that a line that stays is not drawn anew.
 */
export class Looks {
  /** Return the look with which each line begins; what was set before the first line that is here is not known. */
  of(lines: readonly ILine[]): ILook[] {
    const last = new Map<number, ILook>();
    return lines.map(line => {
      const before = last.get(line.task) ?? PLAIN;
      // (a part that was removed may have changed it)
      last.set(line.task, line.notice ? PLAIN : this.after(line, before));
      return line.notice ? PLAIN : before;
    });
  }

  private after(line: ILine, before: ILook): ILook {
    const known = this.found.get(line);
    if (known?.before === before) {
      return known.after;
    }
    const after = lookAfter(line.text, before);
    this.found.set(line, { before, after });
    return after;
  }

  private readonly found = new WeakMap<ILine, { before: ILook; after: ILook }>();
}
