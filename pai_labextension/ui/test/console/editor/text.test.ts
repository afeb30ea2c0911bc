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
} from '../../../console/editor/text';

const COMMENTED = `{
  // greets
  "jobName": "greeter",
  "taskRoles": [
    {"name": "one", /* first */ "taskNumber": 1},
    {"name": "two", "taskNumber": 2}
  ]
}
`;

const comments = (text: string) => text.match(/\/\/ \w+|\/\*.*?\*\//g);

describe('the text of a job', () => {
  it('may be blank, and have comments', () => {
    expect(parseText(' \n')).toMatchObject({ config: {}, error: null });
    expect(valueAt(parseText(COMMENTED).config, ['taskRoles', 1, 'name'])).toBe('two');
  });

  it('has no meaning where it is no JSON, and says where', () => {
    expect(parseText('{"jobName": }')).toMatchObject({ config: undefined, error: { offset: 12 } });
    expect(parseText('{"taskRoles": [,]}')).toMatchObject({ error: { offset: 15 } });
  });

  it('may have commas before closing brackets', () => {
    expect(parseText('{"taskRoles": [{"name": "one",},], // why\n}')).toMatchObject({
      config: { taskRoles: [{ name: 'one' }] },
      error: null
    });
  });

  it('stays readable whatever is removed from it or set in it', () => {
    const texts = [
      '{"a": 1, "b": [{"x": 1}, {"y": 2}], "c": {"z": 1}}',
      '{"a": 1, "b": [{"x": 1}, {"y": 2},], "c": {"z": 1,},}',
      '{\n  "a": 1, // one\n  "b": [\n    {"x": 1}, // first\n    {"y": 2} // last\n  ],\n  "c": {\n    "z": 1 // z\n  }\n}',
      '{\n  "a": 1 // one\n  , "b": [\n    {"x": 1},\n    {"y": 2},\n  ] /* b */, "c": {\n    "z": 1,\n  },\n}'
    ];
    const whole = { a: 1, b: [{ x: 1 }, { y: 2 }], c: { z: 1 } };
    const cases: [(string | number)[], unknown, unknown][] = [
      [['a'], undefined, { b: whole.b, c: whole.c }],
      [['b'], undefined, { a: 1, c: whole.c }],
      [['c'], undefined, { a: 1, b: whole.b }],
      [['b', 0], undefined, { ...whole, b: [{ y: 2 }] }],
      [['b', 1], undefined, { ...whole, b: [{ x: 1 }] }],
      [['c', 'z'], undefined, { ...whole, c: {} }],
      [['c', 'none'], undefined, whole],
      [['b', 2], { w: 3 }, { ...whole, b: [...whole.b, { w: 3 }] }],
      [['c', 'y'], 2, { ...whole, c: { z: 1, y: 2 } }]
    ];
    for (const text of texts) {
      for (const [path, value, expected] of cases) {
        const changed = applied(text, edits(text, path, value));
        expect([text, path, parseText(changed)]).toMatchObject([text, path, { config: expected, error: null }]);
        // (what stands in a list or object goes with it)
        if (path.length > 1) {
          expect(comments(changed)).toEqual(comments(text));
        }
      }
    }
  });

  it('loses the line of what is removed, and nothing else', () => {
    const lines = '{\n  // greets\n  "a": 1, // one\n  "b": 2,\n  "c": 3\n}';
    expect(applied(lines, edits(lines, ['b'], undefined))).toBe(lines.replace('  "b": 2,\n', ''));
    expect(applied(lines, edits(lines, ['c'], undefined))).toBe(lines.replace(',\n  "c": 3', ''));
    const compact = '{"a": 1, "b": 2, "c": 3}';
    expect(applied(compact, edits(compact, ['a'], undefined))).toBe('{"b": 2, "c": 3}');
    expect(applied(compact, edits(compact, ['c'], undefined))).toBe('{"a": 1, "b": 2}');
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
