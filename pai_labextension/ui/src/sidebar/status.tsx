// The status-bar item: how many of my jobs run and wait, and why the first one waits.

import { ReactWidget, UseSignal } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { paiIcon } from '../icon';
import { IJobsModel } from '../model';
import { explanation, summary } from './summary';

/** Shows `summary`; `onClick` opens the list. */
export class StatusItem extends ReactWidget {
  constructor(
    private readonly model: IJobsModel,
    private readonly trans: TranslationBundle,
    private readonly onClick: () => void
  ) {
    super();
    this.addClass('pai-StatusItem');
  }

  protected render(): React.ReactElement {
    return (
      <UseSignal signal={this.model.changed}>
        {() => (
          <button
            type="button"
            className={this.model.error ? 'pai-StatusItem-button pai-mod-unavailable' : 'pai-StatusItem-button'}
            title={explanation(this.model, this.trans)}
            onClick={this.onClick}
          >
            <paiIcon.react tag="span" width="14px" height="14px" />
            <span>{summary(this.model, this.trans)}</span>
          </button>
        )}
      </UseSignal>
    );
  }
}
