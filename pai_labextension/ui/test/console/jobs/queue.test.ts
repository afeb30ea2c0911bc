import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { IQueueEntry } from '../../../console/data/client';
import { QueueModel } from '../../../console/jobs/queue';
import { clientOf, NotebookServer, user, waits } from '../../notebookServer';

describe('QueueModel', () => {
  let server: NotebookServer;
  let model: QueueModel;

  const first = waits({ name: 'first', place: 1 });
  const others = waits({ name: null, user: 'bob', place: 2 });
  const second = waits({ name: 'second', place: 3 });
  const urgent = waits({ name: 'urgent', place: 4, priority: 10 });

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [200, user()];
    server.answers['GET queue'] = [200, { default: [first, others, second, urgent], vision: [] }];
    model = new QueueModel(clientOf(server.settings));
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  /** Look at the queue, and wait for its first answer. */
  async function shown(): Promise<IQueueEntry[]> {
    const heard = new Promise<void>(resolve => model.changed.connect(() => resolve()));
    model.setShown(true);
    await heard;
    return [...(model.answer!.default ?? [])];
  }

  it('asks nobody until somebody looks', async () => {
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(server.requests).toEqual([]);
    expect(model.answer).toBeNull();
    expect(await shown()).toHaveLength(4);
    expect(server.requests).toEqual(['GET user', 'GET queue?limit=200&own=1']);
  });

  it('lets a person move their own jobs only, among those of one priority', async () => {
    const [one, theirs, two, low] = await shown();
    expect(model.mayChange(theirs!)).toBe(false);
    expect(model.moves('default', theirs!)).toEqual({ up: undefined, down: undefined });
    expect(model.moves('default', one!)).toEqual({ up: undefined, down: 2 });
    expect(model.moves('default', two!)).toEqual({ up: 1, down: undefined });
    expect(model.moves('default', low!)).toEqual({ up: undefined, down: undefined });
  });

  it('lets an administrator move all, whose names they see', async () => {
    server.answers['GET user'] = [200, user({ username: 'root', admin: true })];
    server.answers['GET queue'] = [200, { default: [first, { ...others, name: 'theirs' }, second] }];
    const [one, theirs, two] = await shown();
    expect(model.moves('default', one!)).toEqual({ up: undefined, down: 2 });
    expect(model.moves('default', theirs!)).toEqual({ up: 1, down: 3 });
    expect(model.moves('default', two!)).toEqual({ up: 2, down: undefined });
  });

  it('moves a job and shows where it is then', async () => {
    const [, , two] = await shown();
    server.answers['PUT user/alice/jobs/second/queue'] = [202, {}];
    server.answers['GET queue'] = [200, { default: [second, others, first] }];
    expect(await model.change(two!, { place: 1 })).toBe(true);
    expect(server.asked.find(asked => asked.method === 'PUT')!.body).toBe('{"place":1}');
    expect(model.answer!.default![0]!.name).toBe('second');
  });

  it('gives a refusal in the words of the scheduler until something else is done', async () => {
    const [one] = await shown();
    const path = 'PUT user/alice/jobs/first/queue';
    server.answers[path] = [400, { code: 'InvalidParametersError', message: 'priority must be a whole number.' }];
    expect(await model.change(one!, { priority: 101 })).toBe(false);
    expect(model.error).toBe('priority must be a whole number.');
    await model.refresh();
    expect(model.error).toBe('priority must be a whole number.');
    server.answers[path] = [202, {}];
    expect(await model.change(one!, { priority: 70 })).toBe(true);
    expect(model.error).toBe('');
  });

  it('says why it knows nothing, keeps what it knew, and recovers', async () => {
    await shown();
    server.answers['GET queue'] = [502, { code: 'SchedulerUnreachable', message: 'The scheduler does not answer.' }];
    await model.refresh();
    expect(model.error).toBe('The scheduler does not answer.');
    expect(model.answer!.default).toHaveLength(4);
    server.answers['GET queue'] = [200, {}];
    await model.refresh();
    expect(model.error).toBe('');
  });
});
