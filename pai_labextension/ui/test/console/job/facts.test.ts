import { describe, expect, it } from 'vitest';

import { endSentences, exitWords, gpuCount, resultsPath, since, spansOf } from '../../../console/data/job';
import { durationWords } from '../../../console/kit/time';
import { freshName } from '../../../console/data/client';
import { attempt, jobStatus, trans } from '../../notebookServer';

describe('what is said of a job', () => {
  it('counts GPUs, beyond 32 of them too', () => {
    expect([0, 1, 0b1011, 2 ** 40 + 1].map(gpuCount)).toEqual([0, 1, 3, 2]);
  });

  it('is how long something took', () => {
    const words = [-5, 59_999, 61_000, 3_660_000, 90_000_000].map(ms => durationWords(ms, trans));
    expect(words).toEqual(['0 s', '59 s', '1 min 1 s', '1 h 1 min', '1 d 1 h']);
  });

  it('is the exit code, and what the table calls it where it is one of the table’s', () => {
    const spec = { code: 196, phrase: 'CONTAINER_OOM_KILLED_BY_DOCKER' };
    expect(exitWords(196, spec, trans)).toBe('196 (CONTAINER_OOM_KILLED)');
    expect(exitWords(3, { code: 255, phrase: 'CONTAINER_RUNTIME_UNKNOWN_FAILURE' }, trans)).toBe('3');
    expect(exitWords(null, spec, trans)).toBe('');
  });

  it('is each sentence about its end once', () => {
    const appExitMessages = { container: 'killed', runtime: '' };
    expect(endSentences(jobStatus({ appExitDiagnostics: 'killed', appExitMessages }))).toEqual(['killed']);
    const whole = 'Task worker-0 failed: The image does not exist.';
    const parts = { container: 'The image does not exist.', runtime: 'It was not started.' };
    expect(endSentences(jobStatus({ appExitDiagnostics: whole, appExitMessages: parts }))).toEqual([
      whole,
      'It was not started.'
    ]);
  });

  it('is since when it is in its state', () => {
    const status = jobStatus({ createdTime: 100 });
    expect(since({ ...status, state: 'WAITING' }, [])).toBe(100);
    expect(since({ ...status, state: 'WAITING' }, [attempt({ createdTime: 200, completedTime: 300 })])).toBe(300);
    expect(since(status, [attempt({ createdTime: 200, launchedTime: 250 })])).toBe(250);
    expect(since({ ...status, state: 'FAILED', completedTime: 900 }, [])).toBe(900);
  });

  it('is what it did for how long, over all attempts', () => {
    const attempts = [
      attempt({ createdTime: 110, launchedTime: 120, completedTime: 150 }),
      attempt({ attempt: 1, createdTime: 180, launchedTime: null, completedTime: null })
    ];
    expect(spansOf(jobStatus({ createdTime: 100 }), attempts, 200)).toEqual([
      { kind: 'WAITING', begin: 100, end: 110 },
      { kind: 'STARTING', begin: 110, end: 120 },
      { kind: 'RUNNING', begin: 120, end: 150 },
      { kind: 'WAITING', begin: 150, end: 180 },
      { kind: 'STARTING', begin: 180, end: 200 }
    ]);
    expect(spansOf(jobStatus({ createdTime: 100 }), [], 130)).toEqual([{ kind: 'WAITING', begin: 100, end: 130 }]);
  });

  it('is where its results are, where that can be known', () => {
    const path = (outputDir: unknown) => resultsPath(outputDir, 'alice', 'train', 'hdfs://host');
    expect(path(undefined)).toBe('/Output/alice/train');
    expect(path('$PAI_DEFAULT_FS_URI/a%20b/${PAI_USER_NAME}/$PAI_JOB_NAME')).toBe('/a b/alice/train');
    expect(path('hdfs://host/x')).toBe('/x');
    expect(path('hdfs://other/x')).toBeNull();
    expect(path('$PAI_DEFAULT_FS_URI/$PAI_CURRENT_TASK_ROLE_NAME')).toBeNull();
  });
});

describe('the name of a job that runs again', () => {
  it('has the next number', () => {
    expect(['train', 'train-2', 'train-9', 'v1-0', '7'].map(freshName)).toEqual([
      'train-2',
      'train-3',
      'train-10',
      'v1-0-2',
      '7-2'
    ]);
    expect(freshName('x'.repeat(255))).toHaveLength(255);
  });
});
