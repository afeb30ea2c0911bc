import { describe, expect, it } from 'vitest';

import {
  applied,
  edits,
  parseText,
  pathOf,
  rangeOf,
  swapEdits,
  textOf,
  uniqueName,
  valueAt
} from '../../src/editor/text';

const COMMENTED = `{
  // greets
  "jobName": "greeter",
  "taskRoles": [
    {"name": "one", /* first */ "taskNumber": 1},
    {"name": "two", "taskNumber": 2}
  ]
}
`;

describe('the text of a job', () => {
  it('may be blank, and have comments', () => {
    expect(parseText(' \n')).toMatchObject({ config: {}, error: null });
    expect(valueAt(parseText(COMMENTED).config, ['taskRoles', 1, 'name'])).toBe('two');
  });

  it('has no meaning where it is no JSON, and says where', () => {
    expect(parseText('{"jobName": }')).toMatchObject({ config: undefined, error: { offset: 12 } });
    expect(parseText('{"taskRoles": [],}').error).not.toBeNull();
  });

  it('keeps comments and spaces when a value is set or removed', () => {
    expect(applied(COMMENTED, edits(COMMENTED, ['jobName'], 'other'))).toBe(COMMENTED.replace('greeter', 'other'));
    const without = applied(COMMENTED, edits(COMMENTED, ['taskRoles', 0, 'taskNumber'], undefined));
    expect(without).toContain('// greets');
    expect(valueAt(parseText(without).config, ['taskRoles', 0])).toEqual({ name: 'one' });
  });

  it('gets a role before another one', () => {
    const longer = applied(COMMENTED, edits(COMMENTED, ['taskRoles', 1], { name: 'new' }, true));
    const roles = valueAt(parseText(longer).config, ['taskRoles']) as { name: string }[];
    expect(roles.map(({ name }) => name)).toEqual(['one', 'new', 'two']);
  });

  it('lets two roles change places with their comments', () => {
    const swapped = applied(COMMENTED, swapEdits(COMMENTED, ['taskRoles'], 0, 1));
    expect(swapped).toContain('{"name": "two", "taskNumber": 2},\n    {"name": "one", /* first */ "taskNumber": 1}');
    expect(swapEdits(COMMENTED, ['taskRoles'], 1, 2)).toEqual([]);
  });

  it('shows where a value stands, or what is around it', () => {
    const { tree } = parseText(COMMENTED);
    const marked = (path: (string | number)[]) => {
      const { from, to } = rangeOf(tree, path);
      return COMMENTED.slice(from, to);
    };
    expect(marked(['taskRoles', 1, 'taskNumber'])).toBe('"taskNumber": 2');
    expect(marked(['taskRoles', 1, 'command'])).toBe('{');
    expect(rangeOf(undefined, ['jobName'])).toEqual({ from: 0, to: 0 });
  });
});

describe('a path', () => {
  it('is read as the scheduler writes it', () => {
    expect(pathOf('$.taskRoles[10].portList[0].label')).toEqual(['taskRoles', 10, 'portList', 0, 'label']);
    expect(pathOf('$.jobEnvs["a \\"b]"]')).toEqual(['jobEnvs', 'a "b]']);
    expect(pathOf('$')).toEqual([]);
  });

  it('leads nowhere through what is no object', () => {
    expect(valueAt({ jobName: 'a', taskRoles: null }, ['taskRoles', 0, 'name'])).toBeUndefined();
  });
});

describe('a name', () => {
  it('is made unique in place of the last time', () => {
    expect(uniqueName('train')).toMatch(/^train_[0-9a-f]{8}$/);
    expect(uniqueName(uniqueName('train'))).toMatch(/^train_[0-9a-f]{8}$/);
    expect(uniqueName('')).toMatch(/^job_[0-9a-f]{8}$/);
  });
});

describe('a job that is written out', () => {
  it('reads as it was', () => {
    const config = { jobName: 'a', taskRoles: [{ name: 'b' }] };
    expect(parseText(textOf(config)).config).toEqual(config);
  });
});
