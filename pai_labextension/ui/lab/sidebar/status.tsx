// The status-bar item: how many of my jobs run and wait, and why the first one waits.

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { OnSignal } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { paiIcon } from '../icon';
import { IJobsModel } from '../../console/data/jobs';
import { explanation, summary } from './summary';

/** Shows `summary`; `onClick` opens the list. */
export class StatusItem extends ReactWidget {
  constructor(
    private readonly model: IJobsModel,
    private readonly trans: ITranslation,
    private readonly onClick: () => void
  ) {
    super();
    this.addClass('pai-StatusItem');
  }

  protected render(): React.ReactElement {
    return (
      <OnSignal signal={this.model.changed}>
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
      </OnSignal>
    );
  }
}
