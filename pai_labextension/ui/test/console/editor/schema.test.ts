import { describe, expect, it } from 'vitest';

import { JobSchema } from '../../../console/editor/text';

const schema = new JobSchema({
  required: ['jobName', 'taskRoles'],
  properties: {
    jobName: { type: 'string', title: 'Job name' },
    old: { type: 'string', deprecated: true },
    isDebug: { type: 'boolean' },
    taskRoles: { type: 'array', items: { $ref: '#/$defs/role' } }
  },
  $defs: {
    role: {
      required: ['name', 'command'],
      properties: {
        name: { type: 'string', description: 'Of the role' },
        command: { type: 'string' },
        taskNumber: { type: ['integer', 'null'], default: 1 },
        portList: { type: 'array', items: { required: ['label'], properties: { label: { type: 'string' } } } }
      }
    }
  }
});

describe('the schema of a job', () => {
  it('has the words of a field, wherever it is', () => {
    expect(schema.words(['jobName'])).toEqual({ title: 'Job name', description: '', fallback: '' });
    expect(schema.words(['taskRoles', 4, 'name'])).toMatchObject({ title: 'name', description: 'Of the role' });
    expect(schema.words(['taskRoles', 0, 'taskNumber']).fallback).toBe('1');
    expect(schema.words(['no', 'such'])).toMatchObject({ title: 'such' });
  });

  it('offers fields that are still used, values where they are few, and a beginning', () => {
    expect(schema.names([])).toEqual(['jobName', 'isDebug', 'taskRoles']);
    expect(schema.values(['isDebug'])).toEqual([true, false]);
    expect(schema.values(['jobName'])).toEqual([]);
    expect(['jobName', 'isDebug', 'taskRoles'].map(name => schema.beginning([name]))).toEqual(['', false, []]);
    expect(schema.beginning(['taskRoles', 0, 'taskNumber'])).toBe(1);
  });

  it('lists the texts that are still needed', () => {
    const config = { jobName: 'a', taskRoles: [{ name: 'b', command: '', portList: [{ label: 'c' }, {}] }] };
    expect(schema.blanks(config)).toEqual([
      ['taskRoles', 0, 'command'],
      ['taskRoles', 0, 'portList', 1, 'label']
    ]);
    expect(schema.blanks({})).toEqual([['jobName']]);
  });
});
