import { describe, expect, it } from 'vitest';

import { IRunPlan } from '../../../console/data/client';
import { canRun } from '../../../console/data/jobs';
import { gigabytes, megabytes, parameterRows, wholeNumber, withParameter } from '../../../console/submit/run';

const plan = { parameters: { rate: '0.1', name: "'resnet'" } } as Partial<IRunPlan> as IRunPlan;

describe('a run', () => {
  it('is of a notebook or a script', () => {
    expect(['a/train.ipynb', 'B.PY', 'go.sh', 'notes.md', 'py', 'a.pyc'].map(canRun)).toEqual([
      ...[true, true, true],
      ...[false, false, false]
    ]);
  });

  it('sends only the parameters that are other than in the notebook', () => {
    const changed = withParameter({ path: 'a.ipynb' }, plan, 'rate', '0.5');
    expect(changed.parameters).toEqual({ rate: '0.5' });
    expect(parameterRows(changed, plan)).toEqual([
      ['rate', '0.5'],
      ['name', "'resnet'"]
    ]);
    expect(withParameter(changed, plan, 'rate', '0.1').parameters).toEqual({});
  });

  it('asks for numbers that make sense', () => {
    expect(['2', '0', '-1', '1.5', '', 'x'].map(typed => wholeNumber(typed, 0))).toEqual([
      2,
      0,
      null,
      null,
      null,
      null
    ]);
    expect(['4', '0.5', '0.01', 'x', ''].map(megabytes)).toEqual([4096, 512, null, null, null]);
    expect([4096, 512, 1000].map(gigabytes)).toEqual(['4', '0.5', '0.98']);
  });
});
