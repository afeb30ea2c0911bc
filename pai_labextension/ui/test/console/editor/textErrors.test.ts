import { describe, expect, it } from 'vitest';

import { parseText, shapeProblem, textProblem } from '../../../console/editor/text';
import { trans } from '../../notebookServer';

describe('a text that is no JSON', () => {
  it.each([
    ['{"a": 1 "b": 2}', 'Line 1, column 9: a comma is missing before this'],
    ['{"a" 1}', 'Line 1, column 6: a colon is missing before this'],
    ['{"a": 1,\n,}', 'Line 2, column 1: a name in double quotes is missing here, or a comma before it is too many'],
    ['{"a": }', 'Line 1, column 7: a value is missing here, or a comma before it is too many'],
    ['{"a": [1', 'Line 1, column 9: a closing ] is missing'],
    ['{"a": 1', 'Line 1, column 8: a closing } is missing'],
    ['{}\n{}', 'Line 2, column 1: the job ends before this'],
    ['{"a": "b', 'Line 1, column 7: the closing quote of this text is missing'],
    ['{"a": "\\q"}', 'Line 1, column 7: no such character can stand behind a backslash in a text'],
    ['{} /* never', 'Line 1, column 4: the end of this comment is missing'],
    ["{'a': 1}", 'Line 1, column 2: this is no JSON']
  ])('is told with its place: %s', (text, said) => {
    expect(textProblem(text, parseText(text).error!, trans)).toBe(said);
  });
});

describe('a job that the form cannot show', () => {
  it.each([
    [[], 'A job is a JSON object: the text has to begin with {.'],
    [{ jobEnvs: [] }, 'jobEnvs has to be an object; put it right in the text.'],
    [{ extras: 'x' }, 'extras has to be an object; put it right in the text.'],
    [{ taskRoles: {} }, 'taskRoles has to be a list of objects; put it right in the text.'],
    [{ taskRoles: [1] }, 'taskRoles has to be a list of objects; put it right in the text.'],
    [{ taskRoles: [{ portList: ['x'] }] }, 'portList has to be a list of objects; put it right in the text.']
  ])('is said in a sentence: %j', (config, said) => {
    expect(shapeProblem(config, trans)).toBe(said);
  });

  it('is one of these only', () => {
    expect(shapeProblem({}, trans)).toBeNull();
    expect(shapeProblem({ jobEnvs: null, taskRoles: [{ name: 7, portList: [{}] }] }, trans)).toBeNull();
  });
});
