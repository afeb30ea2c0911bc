// An editor for a job that is no file yet: what is typed outlives a reload, and closing asks first.

import { Dialog, MainAreaWidget, showDialog } from '@jupyterlab/apputils';
import { IStateDB } from '@jupyterlab/statedb';
import { Message } from '@lumino/messaging';

import { Debouncer } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { editJobIcon } from '../icon';
import { JobEditor } from './editor';
import { isObject } from './text';

/** ms after the last key before what was typed is kept. */
const QUIET = 500;

export class NewJobWidget extends MainAreaWidget<JobEditor> {
  /**
   * @param key - under which what is typed is kept
   * @param onSave - saves it as a file; resolves with whether it did
   */
  constructor(
    content: JobEditor,
    readonly key: string,
    private readonly state: IStateDB | null,
    private readonly trans: ITranslation,
    private readonly onSave: () => Promise<boolean>
  ) {
    super({ content });
    this.id = key;
    this.toolbar.hide(); // the editor has its buttons in its head
    this.title.icon = editJobIcon;
    this.title.closable = true;
    this.keeping = new Debouncer(() => this.keep(), QUIET);
    content.model.changed.connect(() => this.onChange());
    this.onChange();
  }

  dispose(): void {
    this.keeping.dispose();
    super.dispose();
  }

  /** Close without asking: it is kept elsewhere. */
  discard(): void {
    void this.state?.remove(this.key);
    this.dispose();
  }

  protected onCloseRequest(message: Message): void {
    void this.mayClose().then(may => {
      if (may) {
        void this.state?.remove(this.key);
        super.onCloseRequest(message);
      }
    });
  }

  private async mayClose(): Promise<boolean> {
    if (!this.content.model.hasChanges) {
      return true;
    }
    const { trans } = this;
    const { button } = await showDialog({
      title: trans.__('Close the job without saving it?'),
      body: trans.__('It was not submitted as it is now, and is in no file.'),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.okButton({ label: trans.__('Save as a file …') }),
        Dialog.warnButton({ label: trans.__('Close without saving') })
      ]
    });
    if (button.displayType === 'warn') {
      return true;
    }
    // (where it is saved, its file is opened in place of this)
    if (button.accept) {
      await this.onSave();
    }
    return false;
  }

  private onChange(): void {
    const { model } = this.content;
    const name = model.value(['jobName']);
    this.title.label = typeof name === 'string' && name !== '' ? name : this.trans.__('New PAI job');
    this.title.className = model.hasChanges ? 'jp-mod-dirty' : '';
    this.keeping.invoke();
  }

  private async keep(): Promise<void> {
    if (!this.isDisposed) {
      const { text, submitted } = this.content.model;
      await this.state?.save(this.key, { text, submitted });
    }
  }

  private readonly keeping: Debouncer;
}

/** What is kept of an editor; `submitted`: under which name this text was, if it was. */
export interface IKept {
  readonly text: string;
  readonly submitted: string | null;
}

/** Return what was kept under a key; `null` where nothing was. */
export async function keptJob(state: IStateDB | null, key: string): Promise<IKept | null> {
  const kept = await state?.fetch(key);
  return isObject(kept) && typeof kept.text === 'string'
    ? { text: kept.text, submitted: typeof kept.submitted === 'string' ? kept.submitted : null }
    : null;
}
