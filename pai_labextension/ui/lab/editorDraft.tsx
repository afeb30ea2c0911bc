// A job that is no file yet: what is typed outlives a reload, closing asks first, and it can be saved.

import { MainAreaWidget } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { Contents } from '@jupyterlab/services';
import { IStateDB } from '@jupyterlab/statedb';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { Debouncer } from '../console/data/store';
import { isObject } from '../console/editor/text';
import { IHost } from '../console/host';
import { ask, choose, confirm, showError } from '../console/kit/dialog';
import { ENDING } from './editor';
import { editJobIcon } from './icon';
import { JobEditorWidget } from './editorWidget';

/** ms after the last key before what was typed is kept. */
const QUIET = 500;

export class NewJobWidget extends MainAreaWidget<JobEditorWidget> {
  /**
   * @param key - under which what is typed is kept
   * @param onSave - saves it as a file; resolves with whether it did
   */
  constructor(
    content: JobEditorWidget,
    readonly key: string,
    private readonly state: IStateDB | null,
    private readonly host: IHost,
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
    const { root, trans } = this.host;
    const title = trans.__('Close the job without saving it?');
    const text = <p>{trans.__('It was not submitted as it is now, and is in no file.')}</p>;
    const answer = await choose<'save' | 'close' | null>(root, title, text, [
      { label: trans.__('Cancel'), answer: null },
      { label: trans.__('Save as a file …'), answer: 'save', kind: 'accept' },
      { label: trans.__('Close without saving'), answer: 'close', kind: 'warn' }
    ]);
    // (where it is saved, its file is opened in place of this)
    if (answer === 'save') {
      await this.onSave();
    }
    return answer === 'close';
  }

  private onChange(): void {
    const { model } = this.content;
    const name = model.value(['jobName']);
    this.title.label = typeof name === 'string' && name !== '' ? name : this.host.trans.__('New PAI job');
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

/**
 * Ask for a name and save a text under it. Resolves with its path; `null` where the person gave up.
 *
 * @param name - that is proposed
 * @param folder - in which it is saved
 */
export async function saveJob(
  text: string,
  name: string,
  folder: string,
  contents: Contents.IManager,
  host: IHost
): Promise<string | null> {
  const { trans } = host;
  const title = trans.__('Save the job as a file');
  const label = trans.__('Name of the file, in the folder that the file browser shows');
  const given = await ask(host, { title, label, value: `${name}${ENDING}`, accept: trans.__('Save') });
  if (given === null) {
    return null;
  }
  const path = PathExt.join(folder, given.endsWith('.json') ? given : `${given}${ENDING}`);
  if ((await exists(path, contents)) && !(await mayReplace(path, host))) {
    return null;
  }
  try {
    await contents.save(path, { type: 'file', format: 'text', content: text });
    return path;
  } catch (error) {
    await showError(host, trans.__('The job was not saved'), error);
    return null;
  }
}

async function exists(path: string, contents: Contents.IManager): Promise<boolean> {
  try {
    await contents.get(path, { content: false });
    return true;
  } catch {
    return false;
  }
}

function mayReplace(path: string, host: IHost): Promise<boolean> {
  const { trans } = host;
  return confirm(host, {
    title: trans.__('Replace the file?'),
    text: trans.__('There is a file “%1” already.', path),
    accept: trans.__('Replace'),
    warn: true
  });
}
