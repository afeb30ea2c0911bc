import { describe, expect, it } from 'vitest';

import { IKernelState } from '../../../console/data/client';
import { endsSoon, isJobKernel, shownOf } from '../../../console/session/kernels';
import { trans } from '../../notebookServer';

function kernel(changes: Partial<IKernelState> = {}): IKernelState {
  return {
    id: '1',
    name: 'pai-python3-1-p100',
    job: 'kernel_01234567',
    user: 'alice',
    phase: 'running',
    reason: '',
    place: null,
    idleLimit: 1800,
    idleLeft: 1800,
    deaths: 0,
    death: '',
    log: '',
    ...changes
  };
}

const shown = (changes: Partial<IKernelState>, read = 0) => shownOf(kernel(changes), read, trans);

describe('the line above a notebook', () => {
  it('is not there while the kernel runs', () => {
    expect(shown({})).toBeUndefined();
    expect(shown({ idleLeft: null })).toBeUndefined();
  });

  it('says why a kernel waits, or that it does', () => {
    expect(shown({ phase: 'waiting', reason: 'place 3' })).toEqual({ kind: 'waits', words: 'place 3' });
    expect(shown({ phase: 'starting' })!.words).toBe('The kernel waits for its task.');
    expect(shown({ phase: 'lost', reason: 'it runs on' })!.kind).toBe('waits');
  });

  it('warns before an idle kernel ends', () => {
    const warning = shown({ idleLeft: 241 })!;
    expect(warning.kind).toBe('idle');
    expect(warning.words).toContain('for 26 min. In 5 min it ends');
  });

  it('says why it died until that was read, also where another one runs', () => {
    expect(shown({ deaths: 2, death: 'signal 11' }, 1)).toEqual({ kind: 'died', words: 'signal 11' });
    expect(shown({ deaths: 2, death: 'signal 11' }, 2)).toBeUndefined();
  });

  it('says why it ended, with what its task wrote last', () => {
    const ended = { phase: 'ended', reason: 'stopped', log: 'Killed' } as const;
    expect(shown(ended)).toEqual({ kind: 'ended', words: 'stopped', log: 'Killed' });
  });
});

describe('an idle kernel', () => {
  it('ends soon in its last five minutes, or the last quarter of a short time', () => {
    expect([301, 300].map(idleLeft => endsSoon(kernel({ idleLeft })))).toEqual([false, true]);
    expect([16, 15].map(idleLeft => endsSoon(kernel({ idleLimit: 60, idleLeft })))).toEqual([false, true]);
    expect(endsSoon(kernel({ idleLeft: null }))).toBe(false);
  });
});

describe('a kernel that is a job', () => {
  it('is known by its provisioner', () => {
    const spec = (metadata: object) => ({ metadata }) as unknown as Parameters<typeof isJobKernel>[0];
    expect(isJobKernel(spec({ kernel_provisioner: { provisioner_name: 'pai-provisioner' } }))).toBe(true);
    expect(isJobKernel(spec({ kernel_provisioner: { provisioner_name: 'local-provisioner' } }))).toBe(false);
    expect(isJobKernel(spec({}))).toBe(false);
    expect(isJobKernel(undefined)).toBe(false);
  });
});
