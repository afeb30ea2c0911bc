// With which colours each line begins: those with which the line before it in the same log ended.

import { ILine } from './lines';
import { ILook, lookAfter, PLAIN } from './terminal';

/** Remembers what it found of lines, so that a line that stays is not drawn anew. */
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
