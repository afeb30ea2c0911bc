// Says in a notebook that its kernel was ended because the server's memory was not enough.

import type { Cell, ICodeCellModel } from '@jupyterlab/cells';

import { MemoryInfo as IMemory } from '../../console/generated/types.gen';
import { ITranslation } from '../../console/host';

/** How often the server is asked, and ms before each further time: a page may lose its connection with the kernel. */
const TRIES = 5;
const AGAIN = 2_000;

/** Return what is known of the memory where it has cost a kernel; else `null`. */
export async function lostMemory(ask: () => Promise<IMemory>, again = AGAIN): Promise<IMemory | null> {
  for (let tries = 1; ; tries += 1) {
    try {
      const memory = await ask();
      return memory.lost ? memory : null;
    } catch {
      if (tries === TRIES) {
        return null; // not known
      }
      await new Promise(resolve => setTimeout(resolve, again));
    }
  }
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
export function sentence({ limitMB }: IMemory, trans: ITranslation): string {
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
