// The states of jobs in words.

import { TranslationBundle } from '@jupyterlab/translation';

import { IJob, JobState } from './api';

/** Return how a job is, in words: its state, and what it is doing exactly where the state does not say that. */
export function stateLabel(job: Pick<IJob, 'state' | 'subState'>, trans: TranslationBundle): string {
  const doing = subStateLabel(job.subState, trans);
  const state = word(job.state, trans);
  return doing ? trans.__('%1: %2', state, doing) : state;
}

function word(state: JobState, trans: TranslationBundle): string {
  switch (state) {
    case 'WAITING':
      return trans.__('Waiting');
    case 'RUNNING':
      return trans.__('Running');
    case 'SUCCEEDED':
      return trans.__('Succeeded');
    case 'FAILED':
      return trans.__('Failed');
    case 'STOPPED':
      return trans.__('Stopped');
  }
}

function subStateLabel(subState: string, trans: TranslationBundle): string {
  switch (subState) {
    case 'STARTING':
      return trans.__('starting');
    case 'RETRY_WAIT':
      return trans.__('to be tried again');
    case 'ENDING':
      return trans.__('ending');
    case 'DEBUG_HELD':
      return trans.__('failed, container kept for debugging');
    default:
      return '';
  }
}
