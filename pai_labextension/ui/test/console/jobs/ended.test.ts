import { Signal } from '@lumino/signaling';
import { describe, expect, it } from 'vitest';

import { IJob } from '../../../console/data/client';
import { IJobsModel } from '../../../console/data/jobs';
import { EndedNotices } from '../../../console/jobs/ended';
import { job, trans } from '../../notebookServer';

/** As a model of which each question has its answer. */
class Heard {
  jobs: IJob[] | null = null;
  error = '';
  readonly changed = new Signal<this, void>(this);
  readonly said: string[] = [];
  readonly opened: string[] = [];
  readonly inBrowser: string[] = [];
  wanted = true;
  stoppedHere = '';
  /** The notice that nobody has closed. */
  isShown = '';

  constructor() {
    new EndedNotices(
      {
        trans,
        places: {
          open: place => void this.opened.push('job' in place ? place.job.name : place.page),
          has: () => true,
          href: () => null
        }
      },
      this as unknown as IJobsModel,
      {
        wanted: () => this.wanted,
        inBrowser: { show: (_, message) => void this.inBrowser.push(message) }
      },
      {
        notify: (message, type, options) => {
          this.said.push(`${type}: ${message}`);
          options.actions![0]!.callback({} as MouseEvent);
          return String(this.said.length);
        },
        has: id => id === this.isShown,
        update: ({ id, message, type, actions }) => {
          this.said.push(`${type} in ${id}: ${message}`);
          actions![0]!.callback({} as MouseEvent);
          return true;
        }
      }
    );
  }

  isOwnServer(job: IJob): boolean {
    return job.name === 'mine';
  }

  isStoppedHere(job: IJob): boolean {
    return job.name === this.stoppedHere;
  }

  hear(jobs: IJob[], error = ''): void {
    this.jobs = jobs;
    this.error = error;
    this.changed.emit();
  }
}

describe('the end of a job', () => {
  it('is told once, where the job was seen before it ended, with a way to it', () => {
    const model = new Heard();
    model.hear([job({ name: 'a' }), job({ name: 'b', state: 'WAITING' }), job({ name: 'old', state: 'FAILED' })]);
    expect(model.said).toEqual([]);
    const ended = [job({ name: 'a', state: 'SUCCEEDED' }), job({ name: 'b', state: 'FAILED' })];
    model.hear(ended);
    model.hear(ended);
    expect(model.said).toEqual(['success: a has succeeded.', 'error: b has failed.']);
    expect(model.opened).toEqual(['a', 'b']);
  });

  it('is not told of servers and kernels, nor to who has stopped it here', () => {
    const names = ['mine', 'notebook_0a1b2c3d', 'kernel_0a1b2c3d', 'stopped'];
    const model = new Heard();
    model.stoppedHere = 'stopped';
    model.hear(names.map(name => job({ name })));
    model.hear(names.map(name => job({ name, state: name === 'stopped' ? 'STOPPED' : 'FAILED' })));
    expect(model.said).toEqual([]);
  });

  it('is told where somebody else has stopped it, such as an administrator', () => {
    const model = new Heard();
    model.hear([job({ name: 'a' })]);
    model.hear([job({ name: 'a', state: 'STOPPED' })]);
    expect(model.said).toEqual(['warning: a was stopped.']);
    expect(model.opened).toEqual(['a']);
  });

  it('is told in the notice that is shown of others, however many there are, until that is closed', () => {
    const model = new Heard();
    const names = ['a', 'b', 'c', 'd', 'e'];
    model.hear(names.map(name => job({ name })));
    model.hear([job({ name: 'a', state: 'STOPPED' }), ...names.slice(1).map(name => job({ name }))]);
    model.isShown = '1';
    model.hear([
      ...['b', 'c', 'd'].map(name => job({ name, state: name === 'c' ? 'FAILED' : 'STOPPED' })),
      job({ name: 'e' })
    ]);
    expect(model.said.at(-1)).toBe('error in 1: 4 jobs have failed or were stopped; the last ones: d, c, b');
    expect(model.opened).toEqual(['a', 'jobs', 'jobs', 'jobs']);
    model.isShown = '';
    model.hear([job({ name: 'e', state: 'STOPPED' })]);
    expect(model.said.at(-1)).toBe('warning: e was stopped.');
  });

  it('is told also when the scheduler did not answer meanwhile', () => {
    const model = new Heard();
    model.hear([job({ name: 'a' })]);
    model.hear([job({ name: 'a' })], 'away');
    model.hear([job({ name: 'a', state: 'SUCCEEDED' })]);
    expect(model.said).toEqual(['success: a has succeeded.']);
  });

  it('is told in the browser, too, with the same words', () => {
    const model = new Heard();
    model.hear([job({ name: 'a' })]);
    model.hear([job({ name: 'a', state: 'FAILED' })]);
    expect(model.inBrowser).toEqual(['a has failed.']);
  });

  it('is told nowhere where nobody wants to know', () => {
    const model = new Heard();
    model.wanted = false;
    model.hear([job({ name: 'a' })]);
    model.hear([job({ name: 'a', state: 'FAILED' })]);
    expect([...model.said, ...model.inBrowser]).toEqual([]);
  });
});
