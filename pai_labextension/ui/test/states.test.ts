import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';

import { INode } from '../console/data/client';
import { machineLabel, machineShape, shapeOf, shownState, stateLabel } from '../console/data/words';
import { localText } from '../console/kit/time';
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
    expect(stateLabel(job({ state: 'WAITING', subState: 'DEPENDENCY_WAIT' }), trans)).toBe('Waiting: for other jobs');
  });

  it('of one that can never start looks and reads as no other that waits', () => {
    const waits = job({ state: 'WAITING', subState: 'QUEUED' });
    expect([shapeOf(waits), shapeOf(waits, true)]).toEqual(['waiting', 'never']);
    expect(stateLabel(waits, trans, true)).toBe('Cannot start');
  });

  it('has a shape of its own', () => {
    const states = ['RUNNING', 'SUCCEEDED', 'FAILED', 'STOPPED'] as const;
    expect(states.map(state => shapeOf(job({ state })))).toEqual(['running', 'succeeded', 'failed', 'stopped']);
    expect(shapeOf(job({ state: 'WAITING', subState: 'STARTING' }))).toBe('starting');
    expect(shapeOf(job({ state: 'WAITING', subState: 'RETRY_WAIT' }))).toBe('again');
    expect(machineShape({ state: 'LOST', closed: null })).toBe('failed');
  });
});

describe('the state of a machine', () => {
  const closed = { by: 'root', reason: 'new disk', since: 0 };

  it('says what it means for what starts next', () => {
    const said = (state: INode['state']) => machineLabel({ state, closed: null }, trans, 'en');
    expect(said('READY')).toBe('ready');
    expect(said('PAUSED')).toBe('paused: nothing new starts there');
    expect(said('DRAINED')).toBe('drained: nothing new starts there');
    expect(said('FULL')).toBe('its disk is almost full: nothing new starts there');
    expect(said('LOST')).toBe('lost: it does not answer');
  });

  it('is that it was closed, by whom and why, where it could take jobs otherwise', () => {
    expect(machineLabel({ state: 'READY', closed }, trans, 'en')).toBe('closed by root: new disk');
    expect(shownState({ state: 'READY', closed })).toBe('CLOSED');
    expect(machineLabel({ state: 'LOST', closed }, trans, 'en')).toBe('lost: it does not answer');
    expect(shownState({ state: 'LOST', closed })).toBe('LOST');
    expect(shownState({ state: 'READY', closed: null })).toBe('READY');
  });

  it('says what maintenance is planned or under way', () => {
    const [begin, end] = [1_000, 2_000];
    const window = { name: 'disks', nodes: ['a'], begin, end, reason: 'new disk', by: 'root' };
    const [from, to] = [begin, end].map(time => localText(new Date(time), 'en', 'minutes'));
    const maintenance = [window];
    expect(machineLabel({ state: 'READY', closed: null, maintenance }, trans, 'en')).toBe(
      `ready; maintenance from ${from} to ${to}: new disk`
    );
    const other = { ...window, name: 'power', begin: 3_000, end: 4_000, reason: 'power' };
    const both = machineLabel({ state: 'READY', closed: null, maintenance: [window, other] }, trans, 'en');
    expect(both).toContain('to ' + to + ': new disk; maintenance from');
    expect(both).toMatch(/: power$/);
    const now = { by: 'root', reason: 'new disk', since: begin, until: end };
    expect(machineLabel({ state: 'READY', closed: now, maintenance }, trans, 'en')).toBe(
      `in maintenance until ${to}: new disk`
    );
  });
});
