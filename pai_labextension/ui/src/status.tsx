// The status-bar item: how many of my jobs run and wait, and why the first one waits.

import { ReactWidget, UseSignal } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { paiIcon } from './icon';
import { count, waiting } from './jobs';
import { IJobsModel } from './model';

/** Say in a few words how the person's jobs are. */
export function summary(model: IJobsModel, trans: TranslationBundle): string {
  if (model.error) {
    return trans.__('PAI: not available');
  }
  if (model.jobs === null) {
    return trans.__('PAI: …');
  }
  const parts = [];
  const running = count(model.jobs, 'RUNNING');
  const waits = count(model.jobs, 'WAITING');
  if (running) {
    parts.push(trans.__('%1 running', running));
  }
  if (waits) {
    parts.push(trans.__('%1 waiting', waits));
  }
  return parts.length ? trans.__('PAI: %1', parts.join(' · ')) : trans.__('PAI: no active jobs');
}

/** Say more, for who points at it: why nothing is known, or why the first job waits. */
export function explanation(model: IJobsModel, trans: TranslationBundle): string {
  if (model.error) {
    return model.error;
  }
  const first = waiting(model.jobs ?? [])[0];
  if (!first) {
    return trans.__('Show my PAI jobs');
  }
  const reason = model.reason(first);
  return reason ? trans.__('“%1” is waiting: %2', first.name, reason) : trans.__('“%1” is waiting', first.name);
}

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
