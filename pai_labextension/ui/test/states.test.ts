import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import { stateLabel } from '../src/states';
import { job } from './notebookServer';

const trans = nullTranslator.load('pai_labextension');

describe('the state of a job', () => {
  it('is one word where that says all', () => {
    expect(stateLabel(job(), trans)).toBe('Running');
    expect(stateLabel(job({ state: 'WAITING', subState: 'QUEUED' }), trans)).toBe('Waiting');
  });

  it('says what the job is doing where the word does not', () => {
    const held = job({ subState: 'DEBUG_HELD' });
    expect(stateLabel(held, trans)).toBe('Running: failed, container kept for debugging');
    expect(stateLabel(job({ state: 'WAITING', subState: 'RETRY_WAIT' }), trans)).toBe('Waiting: to be tried again');
  });
});
