import { YFile } from '@jupyter/ydoc';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { JobEditorModel } from '../../../console/editor/model';
import { textOf } from '../../../console/editor/text';
import { textBuffer } from '../../../lab/editorText';
import { clientOf, NotebookServer, trans, user } from '../../notebookServer';

const ROLE = { name: 'main', command: 'true' };
const VALID = {
  errors: [],
  fits: 'now',
  reason: '',
  borrows: false,
  startsWithin: null,
  startsNowIn: [],
  warnings: []
};
const REQUIRED = { required: ['jobName'], properties: { jobName: { type: 'string' } } };

describe('the job in the editor', () => {
  let server: NotebookServer;
  let model: JobEditorModel;

  beforeEach(async () => {
    server = await NotebookServer.open();
    Object.assign(server.answers, {
      'GET user': [200, user()],
      'POST validate': [200, VALID],
      'POST jobs': [202, { message: '' }],
      'GET user/alice/jobs/train': [404, { code: 'NoJobError', message: 'No such job.' }],
      'GET user/alice/jobs/taken': [200, {}]
    });
    const info = { jobSchema: REQUIRED, templates: [], images: [], imageNeeded: true };
    model = new JobEditorModel(textBuffer(new YFile()), info, clientOf(server.settings), trans, 0);
    model.setText(textOf({ jobName: 'train', taskRoles: [ROLE] }), { beginning: true });
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  it('is untouched until somebody changes it, and then has changes until it is submitted', async () => {
    expect([model.isUntouched, model.hasChanges]).toEqual([true, false]);
    model.edit(['taskRoles', 0, 'command'], 'false');
    expect([model.isUntouched, model.hasChanges]).toEqual([false, true]);
    expect(await model.submit()).toEqual({ name: 'train', username: 'alice' });
    expect([model.submitted, model.hasChanges]).toEqual(['train', false]);
    const sent = server.asked.find(({ method, url }) => method === 'POST' && url.startsWith('jobs'))!;
    expect(JSON.parse(sent.body)).toEqual({ jobName: 'train', taskRoles: [{ ...ROLE, command: 'false' }] });
  });

  it('is submitted as it is written, to be kept with its comments', async () => {
    const text = `{"jobName": "train", // why\n "taskRoles": [${JSON.stringify(ROLE)},],}`;
    model.setText(text);
    expect(await model.submit()).toEqual({ name: 'train', username: 'alice' });
    expect(server.asked.find(({ method, url }) => method === 'POST' && url.startsWith('jobs'))!.body).toBe(text);
  });

  it('is said to fit by the scheduler', async () => {
    await expect.poll(() => model.answer?.fits).toBe('now');
    model.edit(['taskRoles', 0, 'command'], 'false');
    expect([model.answer, model.isChecking]).toEqual([null, true]);
    await expect.poll(() => model.answer?.fits).toBe('now');
    expect(model.problems).toEqual([]);
  });

  it('has what had better be known in the list of its problems, and fits all the same', async () => {
    const warnings = [{ path: '$.codeDir', message: 'It is not there yet.' }];
    server.answers['POST validate'] = [200, { ...VALID, warnings }];
    model.edit(['codeDir'], '/alice/code');
    const warning = { kind: 'warn', before: '', places: [['codeDir']], after: 'It is not there yet.' };
    await expect.poll(() => model.problems).toEqual([warning]);
    expect(model.answer?.fits).toBe('now');
  });

  it('has its mistakes beside their fields, and what is only needed is no mistake', async () => {
    const errors = [
      { path: '$.taskRoles[0].command', message: 'Too long.' },
      { path: '$.jobName', message: 'It must not be empty.' }
    ];
    server.answers['POST validate'] = [200, { ...VALID, errors, fits: 'never' }];
    model.edit(['jobName'], '');
    await expect.poll(() => model.mistakesAt(['taskRoles', 0, 'command'])).toEqual(['Too long.']);
    expect(model.needed).toEqual([['jobName']]);
    expect(model.mistakesAt(['jobName'])).toEqual([]);
  });

  it('has all its problems in one list: what is needed, what is wrong, and what no node has', async () => {
    const errors = [
      { path: '$.jobName', message: 'It must not be empty.' },
      { path: '$.taskRoles[0].comand', message: 'No such field.' }
    ];
    const reason = 'Never fits at present: no node has 99 GPUs.';
    server.answers['POST validate'] = [200, { ...VALID, errors, fits: 'never', reason }];
    model.edit(['jobName'], '');
    model.edit(['taskRoles', 0, 'comand'], 'x');
    await expect
      .poll(() => model.problems.map(({ before, places, after }) => [before, ...places, after]))
      .toEqual([
        ['Still needed:', ['jobName'], ''],
        ['', ['taskRoles', 0, 'comand'], 'No such field.'],
        [reason, '']
      ]);
    server.answers['POST validate'] = [200, VALID];
    model.edit(['jobName'], 'train');
    await expect.poll(() => model.problems).toEqual([]);
  });

  it('is told what is without effect beside its mistakes', async () => {
    const warnings = [{ path: '$.extras.nodes', message: 'It has no effect.' }];
    const errors = [{ path: '$.jobName', message: 'Too long.' }];
    server.answers['POST validate'] = [200, { ...VALID, errors, warnings, fits: 'never' }];
    model.edit(['extras'], { nodes: [] });
    await expect.poll(() => model.warnings).toEqual([{ path: ['extras', 'nodes'], message: 'It has no effect.' }]);
    expect(model.mistakesAt(['jobName'])).toEqual(['Too long.']);
    model.setText('{');
    expect(model.warnings).toEqual([]);
  });

  it('is told that its name is taken before it is submitted, and when it is', async () => {
    model.edit(['jobName'], 'taken');
    await expect
      .poll(() => model.mistakesAt(['jobName']))
      .toEqual(['You have a job of this name already. Choose another name.']);
    model.edit(['jobName'], 'train');
    server.answers['POST jobs'] = [409, { code: 'ConflictJobError', message: 'Taken meanwhile.' }];
    expect(await model.submit()).toBeNull();
    expect([model.mistakesAt(['jobName']), model.refusal]).toEqual([['Taken meanwhile.'], '']);
  });

  it('keeps a refusal that is of no field, and can be submitted again', async () => {
    server.answers['POST jobs'] = [503, { code: 'Full', message: 'The disk is full.' }];
    expect(await model.submit()).toBeNull();
    expect([model.refusal, model.hasChanges, model.submitted]).toEqual(['The disk is full.', false, null]);
    server.answers['POST jobs'] = [202, { message: '' }];
    expect(await model.submit()).not.toBeNull();
  });

  it('stays as it was while the text is no JSON, and the way back is kept', () => {
    const text = model.text;
    model.setText(`${text}x`);
    expect(model.obstacle).toContain('Line');
    expect(model.value(['jobName'])).toBe('train');
    model.goBack();
    expect([model.text, model.obstacle]).toEqual([text, null]);
  });

  it('says that nobody could be asked, and goes on', async () => {
    server.answers['POST validate'] = [502, { code: 'X', message: 'The scheduler does not answer.' }];
    model.edit(['taskRoles', 0, 'command'], 'false');
    await expect.poll(() => model.trouble).toBe('The scheduler does not answer.');
    expect([model.answer, model.isChecking]).toEqual([null, false]);
  });

  it('gets copies of a role behind it, which change places', () => {
    model.addRole(0);
    model.addRole();
    expect(model.roles().map(({ name }) => name)).toEqual(['main', 'main_2', 'task_3']);
    model.swapRoles(0, 2);
    expect(model.roles().map(({ name }) => name)).toEqual(['task_3', 'main_2', 'main']);
  });
});
