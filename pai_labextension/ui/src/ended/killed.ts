// Says in a notebook that its kernel was ended because the server's memory was not enough.

import type { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';

import { MemoryInfo as IMemory } from '../generated/types.gen';

/** Knows how many processes the kernel of the operating system has ended for memory, and notices when there are more. */
export class MemoryWatch {
  /** @param ask - the notebook server */
  constructor(private readonly ask: () => Promise<IMemory>) {
    this.known = ask().catch(() => null);
  }

  /** Return what is known of the memory where it has cost a process since the last question; else `null`. */
  async lost(): Promise<IMemory | null> {
    const before = await this.known;
    const now = await this.ask().catch(() => null);
    if (now === null) {
      return null;
    }
    this.known = Promise.resolve(now);
    const killed = now.killed ?? 0;
    return killed > (before?.killed ?? killed) ? now : null;
  }

  private known: Promise<IMemory | null>;
}

/** The cells that run, or were the last to: what a kernel that was ended has not finished. */
export class RunningCells {
  begin(notebook: object, cell: Cell): void {
    this.cells.set(notebook, cell);
  }

  /** The cell in which a notebook's kernel was; `undefined` where it ran none. */
  of(notebook: object): ICodeCellModel | undefined {
    const cell = this.cells.get(notebook);
    return cell?.model.type === 'code' && !cell.isDisposed ? (cell.model as ICodeCellModel) : undefined;
  }

  /** Note that a cell came to its end by itself. */
  end(notebook: object, cell: Cell, success: boolean): void {
    if (success && this.cells.get(notebook) === cell) {
      this.cells.delete(notebook);
    }
  }

  private readonly cells = new WeakMap<object, Cell>();
}

/** Write what is said of it. */
export function sentence({ limitMB }: IMemory, trans: TranslationBundle): string {
  return limitMB === null
    ? trans.__(
        'The kernel was ended because the memory was not enough. What it had computed is lost. Load less at once, or start the server with more memory.'
      )
    : trans.__(
        'The kernel was ended because the memory was not enough: all notebooks and terminals of this server together have %1 MB. What it had computed is lost. Load less at once, or start the server with more, for example %2 MB.',
        limitMB,
        2 * limitMB
      );
}
