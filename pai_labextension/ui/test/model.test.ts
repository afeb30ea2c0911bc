import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Client, IJob, IJobName, IWait } from '../console/data/client';
import { LabTransport } from '../lab/host';
import { JobsModel } from '../console/data/jobs';
import { clientOf, detail, job, jobStatus, NotebookServer, trans, user } from './notebookServer';

describe('JobsModel', () => {
  let server: NotebookServer;
  let model: JobsModel;

  beforeEach(async () => {
    server = await NotebookServer.open();
    server.answers['GET user'] = [200, user()];
    server.answers['GET jobs'] = [200, []];
  });

  afterEach(async () => {
    model.dispose();
    await server.close();
  });

  /** Make the model and wait for its first answer, good or bad. */
  async function heard(): Promise<void> {
    model = new JobsModel(clientOf(server.settings));
    await new Promise<void>(resolve => model.changed.connect(() => resolve()));
  }

  it('asks by itself, and for the jobs of this person only', async () => {
    server.answers['GET jobs'] = [200, [job()]];
    await heard();
    expect(model.jobs).toEqual([job()]);
    expect(server.requests).toEqual(['GET user', 'GET jobs?username=alice&limit=100']);
  });

  it('knows why the first job waits, and of those in view when they are listed', async () => {
    const first = job({ name: 'first', state: 'WAITING', createdTime: 1 });
    const second = job({ name: 'second', state: 'WAITING', createdTime: 2 });
    server.answers['GET jobs'] = [200, [second, first]];
    server.answers['GET user/alice/jobs/first'] = [
      200,
      detail({ jobStatus: jobStatus({ waitingReason: '1 × P100 free of 2' }) })
    ];
    server.answers['GET user/alice/jobs/second'] = [
      200,
      detail({ jobStatus: jobStatus({ waitingReason: 'second in the queue' }) })
    ];
    await heard();
    await expect.poll(() => model.reason(first)).toBe('1 × P100 free of 2');
    expect(model.reason(second)).toBeUndefined();
    model.setShown(true);
    model.see([second]);
    await model.refresh();
    expect(model.reason(second)).toBe('second in the queue');
    expect(model.reason(first)).toBe('1 × P100 free of 2');
    // what goes out of view is shown as it was until it is asked again: its row stays as high as it is
    model.see([]);
    await model.refresh();
    expect(model.reason(second)).toBe('second in the queue');
    // and once it waits no more it has no reason
    server.answers['GET jobs'] = [200, [first, { ...second, state: 'RUNNING' }]];
    await model.refresh();
    expect(model.reason(second)).toBeUndefined();
  });

  it('shows the list before it is known why jobs wait, and asks of those first that are in view now', async () => {
    const [one, two, three, four] = [1, 2, 3, 4].map(number =>
      job({ name: `job-${number}`, state: 'WAITING', createdTime: number })
    ) as [IJob, IJob, IJob, IJob];
    server.answers['GET jobs'] = [200, [four, three, two, one]];
    const asked: string[] = [];
    const answers: (() => void)[] = [];
    class SlowApi extends Client {
      override async waitOf({ name }: IJobName): Promise<IWait> {
        asked.push(name);
        await new Promise<void>(resolve => answers.push(resolve));
        return { reason: `why ${name} waits`, neverFits: false };
      }
    }
    model = new JobsModel(new SlowApi(new LabTransport(server.settings, 'en', trans), trans));
    await expect.poll(() => model.jobs?.length).toBe(4);
    expect(model.reason(one)).toBeUndefined();
    answers.shift()!();
    await expect.poll(() => model.reason(one)).toBe('why job-1 waits');

    model.setShown(true);
    model.see([one, two, three, four]);
    await expect.poll(() => asked).toEqual(['job-1', 'job-2', 'job-3']);
    // it was scrolled on: what is out of view is not asked about, nor what is known already
    model.see([four]);
    await expect.poll(() => asked).toEqual(['job-1', 'job-2', 'job-3', 'job-4']);
    answers.splice(0).forEach(answer => answer());
    await expect.poll(() => model.reason(four)).toBe('why job-4 waits');
  });

  it('keeps the list when a waiting job vanishes while it is asked about', async () => {
    const gone = job({ name: 'gone', state: 'WAITING' });
    server.answers['GET jobs'] = [200, [gone]];
    await heard();
    expect(model.error).toBe('');
    expect(model.jobs).toEqual([gone]);
  });

  it('says why it knows nothing, keeps what it knew, and recovers', async () => {
    server.answers['GET jobs'] = [200, [job()]];
    await heard();
    server.answers['GET jobs'] = [502, { code: 'SchedulerUnreachable', message: 'The scheduler does not answer.' }];
    await model.refresh();
    expect(model.error).toBe('The scheduler does not answer.');
    expect(model.jobs).toEqual([job()]);
    server.answers['GET jobs'] = [200, []];
    await model.refresh();
    expect(model.error).toBe('');
    expect(model.jobs).toEqual([]);
  });

  it('knows the notebook server from other jobs', async () => {
    model = new JobsModel(clientOf(server.settings), 'notebook_1');
    expect(model.isOwnServer(job({ name: 'notebook_1' }))).toBe(true);
    expect(model.isOwnServer(job())).toBe(false);
  });

  it('takes no job for the notebook server where that is none', async () => {
    await heard();
    expect(model.isOwnServer(job({ name: '' }))).toBe(false);
  });

  it('stops a job and shows what became of it', async () => {
    server.answers['GET jobs'] = [200, [job()]];
    server.answers['PUT user/alice/jobs/train/executionType'] = [202, {}];
    await heard();
    server.answers['GET jobs'] = [200, [job({ state: 'STOPPED' })]];
    expect(await model.stop([job()])).toEqual([]);
    expect(model.jobs![0]!.state).toBe('STOPPED');
    expect(model.isStoppedHere(job())).toBe(true);
  });

  it('lets who stops jobs know which were refused, and why', async () => {
    server.answers['PUT user/alice/jobs/one/executionType'] = [202, {}];
    const refused = { code: 'NoJobError', message: 'There is no such job.' };
    server.answers['PUT user/alice/jobs/two/executionType'] = [404, refused];
    await heard();
    const [one, two] = [job({ name: 'one' }), job({ name: 'two' })];
    expect(await model.stop([one, two])).toEqual([{ job: two, message: 'There is no such job.' }]);
    expect([one, two].map(each => model.isStoppedHere(each))).toEqual([true, false]);
  });

  it("knows nothing of a job that somebody else stops, nor of another with a deleted one's name", async () => {
    server.answers['GET jobs'] = [200, [job({ state: 'STOPPED' })]];
    await heard();
    expect(model.isStoppedHere(job())).toBe(false);
    server.answers['PUT user/alice/jobs/train/executionType'] = [202, {}];
    server.answers['DELETE user/alice/jobs/train'] = [202, {}];
    await model.stop([job()]);
    await model.delete([job()]);
    expect(model.isStoppedHere(job())).toBe(false);
  });

  it('deletes jobs, which are gone at once', async () => {
    const [one, two] = [job({ name: 'one', state: 'FAILED' }), job({ name: 'two', state: 'FAILED' })];
    server.answers['GET jobs'] = [200, [one, two]];
    await heard();
    server.answers['DELETE user/alice/jobs/one'] = [202, {}];
    server.answers['GET jobs'] = [200, [two]];
    expect(await model.delete([one])).toEqual([]);
    expect(model.jobs).toEqual([two]);
  });
});
