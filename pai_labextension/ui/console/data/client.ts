// The scheduler's API and the routes beside it, as the server forwards them; meanings: job-contract.md, section 4.

import { GenericSchema, InferOutput } from 'valibot';

import {
  AttemptInfo,
  ClusterUsage as IClusterUsage,
  CodePlan as IPlan,
  ConnectCheck as ICheck,
  ConnectInfo as IConnect,
  JobDetail,
  JobEditorInfo,
  JobEvent,
  JobSummary as IJob,
  KernelState as IKernelState,
  MemoryInfo,
  NodeInfo as INode,
  PublicKeyInfo as IPublicKey,
  QueueEntry as IQueueEntry,
  RunPlan as IRunPlan,
  ScheduleInfo as ISchedule,
  SessionInfo as ISession,
  SubmitProgress as IProgress,
  SubmittedJob as ISubmitted,
  TaskMetrics as IMetrics,
  UserInfo as IUser,
  Validation as IValidation,
  VirtualClusters as IVirtualClusters
} from '../generated/types.gen';
import {
  vAttempts,
  vClusterUsage,
  vCodePlan,
  vCodeServerInfo,
  vConnectCheck,
  vConnectInfo,
  vJobDetail,
  vJobEditorInfo,
  vJobEvents,
  vJobs,
  vKernelStates,
  vMemoryInfo,
  vNodes,
  vPublicKeys,
  vQueues,
  vRunPlan,
  vSchedules,
  vSessionInfo,
  vStartedRun,
  vSubmitLine,
  vTaskMetrics,
  vUserInfo,
  vValidation,
  vVirtualClusters
} from '../generated/valibot.gen';
import { addressOf, IQuestion, ITranslation, ITransport, Query } from '../host';
import { accepted, ApiError, json, parsed } from './errors';
import { LiveStream, Subject } from './stream';

export type {
  ClusterUsage as IClusterUsage,
  CodePlan as IPlan,
  ConnectCheck as ICheck,
  ConnectInfo as IConnect,
  JobSummary as IJob,
  KernelState as IKernelState,
  NodeInfo as INode,
  PublicKeyInfo as IPublicKey,
  QueueEntry as IQueueEntry,
  RunPlan as IRunPlan,
  ScheduleInfo as ISchedule,
  SessionInfo as ISession,
  SessionMessage as IMessage,
  SubmitProgress as IProgress,
  SubmittedJob as ISubmitted,
  TaskMetrics as IMetrics,
  UserInfo as IUser,
  Validation as IValidation,
  VirtualClusters as IVirtualClusters
} from '../generated/types.gen';

export type JobState = IJob['state'];

/** A job among those of all users; a name alone may be two users'. */
export type IJobName = Pick<IJob, 'username' | 'name'>;

/** What a job waits for. */
export interface IWait {
  readonly reason: string;
  /** Whether it could not start on the nodes that are ready if nothing ran there. */
  readonly neverFits: boolean;
}

/** Some jobs, newest first; `next` is the cursor of those that come after them, `null` where there are none. */
export interface IJobsPage {
  readonly jobs: readonly IJob[];
  readonly next: string | null;
}

/** A task of an attempt; `attempt` counts from 0. */
export interface IAttemptTask {
  readonly role: string;
  readonly index: number;
  readonly attempt: number;
}

/** A task of a job; `task` is its role and index, as "worker-0". */
export interface ITask {
  readonly user: string;
  readonly job: string;
  readonly task: string;
}

/** Which log of a task. */
export type Stream = 'all' | 'stdout' | 'stderr';

/** Where a log is read. */
export interface ILogSource {
  /** Read at most `limit` bytes from `offset` on; negative: from the end. */
  read(offset: number, limit: number, timestamps: boolean): Promise<ILogAnswer>;
  /** Read at most `limit` bytes, with times, from the first line on that did not begin before `time` (ms). */
  since(time: number, limit: number): Promise<ILogAnswer>;
  /** What is followed to be told of what is written. */
  readonly subject?: Subject;
}

/** Bytes of a log, and what is said of them. */
export interface ILogAnswer {
  readonly headers: Pick<Headers, 'get'>;
  readonly body: Uint8Array;
}

/** For OpenSSH, for PuTTY and WinSCP, and the half that may be shown to anybody. */
export type KeyFormat = 'openssh' | 'ppk' | 'public';

/** A job file of the file browser, or a job and the folder of its code; what is left out is as the settings say. */
export interface ISubmitRequest {
  readonly path: string;
  readonly job?: Record<string, unknown>;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly generateName?: boolean;
}

/** When a file is to run, as it is sent. */
export interface IRunSchedule {
  readonly cron: string;
  readonly timeZone: string;
  readonly overlap: 'skip' | 'allow';
}

/** A file of the file browser; what is left out is as the notebook server thinks. */
export interface IRunRequest {
  readonly path: string;
  readonly name?: string;
  readonly image?: string;
  readonly gpus?: number;
  readonly gpuType?: string;
  readonly cpus?: number;
  readonly memoryMB?: number;
  readonly virtualCluster?: string;
  /** Those of a notebook that are to be other than what stands there. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Of a script, as a shell reads them. */
  readonly arguments?: string;
  readonly results?: string;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  /** When it runs again and again; absent: once, now. */
  readonly schedule?: IRunSchedule | undefined;
}

/** Places of each queue that are shown. */
const PLACES = 200;
/** Names that are tried for a job that is to run again. */
const NAMES = 100;
/** Characters of the longest name of a job. */
const LONGEST = 255;
/** Answers that are kept to be compared with the next one: of more jobs than anybody has open. */
const KEPT = 64;

/** Asks in the person's name; every call rejects with `ApiError` or `AnswerError`. */
export class Client {
  constructor(
    private readonly transport: ITransport,
    private readonly trans: ITranslation
  ) {
    this.stream = transport.connect ? new LiveStream(heard => transport.connect!(heard)) : null;
  }

  /** Tells what happens; `null`: all has to be asked for. */
  readonly stream: LiveStream | null;

  /** Return who the person is to the scheduler. */
  async whoami(): Promise<IUser> {
    return this.read(vUserInfo, api('user'));
  }

  // Jobs.

  /** List a user's jobs, newest first: `limit` of them, those in some states, those after a cursor. */
  async jobs(
    user: string,
    { limit, state, after }: { limit: number; state?: string | undefined; after?: string | undefined }
  ): Promise<IJobsPage> {
    const query = { username: user, state, after, limit };
    const response = await this.ask({ method: 'GET', path: api('jobs'), query });
    const jobs = parsed(vJobs, json(await response.text()), this.trans);
    return { jobs, next: nextCursor(response.headers.get('Link')) };
  }

  /** Return how a job is; the same object as long as nothing has changed. */
  async detail(job: IJobName): Promise<JobDetail> {
    return this.readAgain(vJobDetail, ofJob(job));
  }

  /** Return why a job waits; the reason is empty when it does not. */
  async waitOf(job: IJobName): Promise<IWait> {
    const { waitingReason, neverFits } = (await this.read(vJobDetail, ofJob(job))).jobStatus;
    return { reason: waitingReason, neverFits };
  }

  /** Return whether there is a job of that name, ended or not. */
  async hasJob(job: IJobName): Promise<boolean> {
    try {
      await this.ask({ method: 'GET', path: ofJob(job) });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 'NoJobError') {
        return false;
      }
      throw error;
    }
  }

  /** Return a job's attempts without their tasks, the oldest first; the same object while nothing has changed. */
  async attempts(job: IJobName): Promise<AttemptInfo[]> {
    return this.readAgain(vAttempts, ofJob(job, 'attempts'), { tasks: 0 });
  }

  /** Return the tasks of an attempt (from 0) by their roles. */
  async tasksOf(job: IJobName, attempt: number): Promise<AttemptInfo['taskRoles']> {
    const [found] = await this.read(vAttempts, ofJob(job, 'attempts'), { attempt });
    return found?.taskRoles ?? {};
  }

  /** Return what happened to a job. */
  async events(job: IJobName): Promise<JobEvent[]> {
    return this.read(vJobEvents, ofJob(job, 'events'));
  }

  /** Return a job as it was submitted. */
  async config(job: IJobName): Promise<Record<string, unknown>> {
    return (await this.send('GET', ofJob(job, 'config'))) as Record<string, unknown>;
  }

  /** Return the text of a job as it was submitted: with its comments, or JSON in one line. */
  async submittedText(job: IJobName): Promise<string> {
    const query = { as: 'submitted' };
    return (await this.ask({ method: 'GET', path: ofJob(job, 'config'), query })).text();
  }

  /** Return what submitting a job would do. */
  async validate(config: unknown): Promise<IValidation> {
    return parsed(vValidation, await this.send('POST', api('validate'), config), this.trans);
  }

  /** Submit a job, as JSON or as a text with comments, which is kept. */
  async submit(job: unknown): Promise<void> {
    await this.send('POST', api('jobs'), job);
  }

  /** Submit the same job under the first name that is free; return that. */
  async runAgain(job: IJobName): Promise<IJobName> {
    const configuration = await this.config(job);
    let { name } = job;
    for (let tries = 0; ; tries += 1) {
      name = freshName(name);
      try {
        await this.send('POST', api('user', job.username, 'jobs'), { ...configuration, jobName: name });
        return { username: job.username, name };
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 409) || tries === NAMES) {
          throw error;
        }
      }
    }
  }

  /**
   * Stop a job.
   *
   * @param force - its tasks have no time to end by themselves, also where they are being stopped already
   */
  async stop(job: IJobName, force = false): Promise<void> {
    await this.send('PUT', ofJob(job, 'executionType'), { value: 'STOP', ...(force && { force }) });
  }

  /** Delete a job and its logs; one that runs is stopped first. */
  async delete(job: IJobName): Promise<void> {
    await this.send('DELETE', ofJob(job));
  }

  /** Change a job's priority, or its place (from 1) among those of its priority that one may move. */
  async reorder(job: IJobName, to: { place: number } | { priority: number }): Promise<void> {
    await this.send('PUT', ofJob(job, 'queue'), to);
  }

  /** Return what a task has used, later than `after` (ms since the epoch); without an attempt: of the last one. */
  async metrics(
    job: IJobName,
    task: Omit<IAttemptTask, 'attempt'> & { attempt?: number },
    after: number
  ): Promise<IMetrics> {
    return this.read(vTaskMetrics, ofTask(job, task, 'metrics'), { attempt: task.attempt, after });
  }

  /** Return where the log of a task is read. */
  logSource(job: IJobName, task: IAttemptTask, stream: Stream): ILogSource {
    const read = async (query: Query): Promise<ILogAnswer> => {
      const path = ofTask(job, task, 'logs', stream);
      const response = await this.ask({ method: 'GET', path, query: { attempt: task.attempt, ...query } });
      return { headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
    };
    return {
      read: (offset, limit, timestamps) => read({ offset, limit, timestamps: timestamps ? 1 : 0 }),
      since: (time, limit) => read({ since: Math.max(0, Math.floor(time)), limit, timestamps: 1 }),
      subject: { kind: 'log', user: job.username, job: job.name, ...task, stream }
    };
  }

  /** Return the address at which a browser downloads the whole log of a task. */
  logUrl(job: IJobName, task: IAttemptTask, stream: Stream): string {
    return this.transport.href(ofTask(job, task, 'logs', stream), { attempt: task.attempt });
  }

  // The cluster.

  /** List the first waiting jobs of each virtual cluster, first come first, and the person's own that come later. */
  async queue(): Promise<Record<string, IQueueEntry[]>> {
    return this.read(vQueues, api('queue'), { limit: PLACES, own: 1 });
  }

  /** List the machines of the cluster. */
  async nodes(): Promise<INode[]> {
    return this.read(vNodes, api('nodes'));
  }

  /** List the virtual clusters by name. */
  async virtualClusters(): Promise<IVirtualClusters> {
    return this.read(vVirtualClusters, api('virtual-clusters'));
  }

  /** Return how many GPUs were taken over the last day, later than `after` (ms since the epoch). */
  async clusterUsage(after: number): Promise<IClusterUsage> {
    return this.read(vClusterUsage, api('cluster', 'usage'), { after });
  }

  // Schedules.

  /** List the schedules of a user by name. */
  async schedules(user: string): Promise<ISchedule[]> {
    return this.read(vSchedules, api('user', user, 'schedules'));
  }

  /** Let a schedule rest, or go on. */
  async pauseSchedule(schedule: ISchedule, paused: boolean): Promise<void> {
    await this.send('PUT', ofSchedule(schedule, 'state'), { paused });
  }

  /** Submit a schedule's job now; return the job's name. */
  async runSchedule(schedule: ISchedule): Promise<string> {
    return parsed(vStartedRun, await this.send('POST', ofSchedule(schedule, 'runs')), this.trans).job;
  }

  /** Delete a schedule; its jobs stay. */
  async deleteSchedule(schedule: ISchedule): Promise<void> {
    await this.send('DELETE', ofSchedule(schedule));
  }

  // Ways into tasks.

  /** Return by which addresses a task is reached. */
  async connect(task: ITask): Promise<IConnect> {
    return this.read(vConnectInfo, ['connect', ...partsOfTask(task)]);
  }

  /** Log in at a task and tell how that went. */
  async checkConnection(task: ITask): Promise<ICheck> {
    return parsed(vConnectCheck, await this.send('POST', ['connect', ...partsOfTask(task), 'check'], {}), this.trans);
  }

  /** Start code-server in a task; give where it is, from the browser's point of view. */
  async codeServer(task: ITask): Promise<string> {
    const answer = await this.send('POST', ['connect', ...partsOfTask(task), 'code-server'], {});
    return this.transport.resolve(parsed(vCodeServerInfo, answer, this.trans).url);
  }

  /** Return a link that the server has told, as the browser opens it. */
  link(url: string): string {
    return this.transport.resolve(url);
  }

  /** Read the key of a job. */
  async key({ user, job }: Pick<ITask, 'user' | 'job'>, format: KeyFormat): Promise<Blob> {
    const path = ofJob({ username: user, name: job }, 'ssh', 'key');
    return (await this.ask({ method: 'GET', path, query: { format } })).blob();
  }

  /** List the public keys that a person has registered. */
  async publicKeys(user: string): Promise<IPublicKey[]> {
    return this.read(vPublicKeys, api('user', user, 'ssh-keys'));
  }

  /** Register a public key, as its file has it. */
  async addPublicKey(user: string, key: string): Promise<void> {
    await this.send('POST', api('user', user, 'ssh-keys'), { key });
  }

  async removePublicKey(user: string, fingerprint: string): Promise<void> {
    await this.send('DELETE', api('user', user, 'ssh-keys', fingerprint));
  }

  /** Return the link to a port of a task. */
  portUrl(task: ITask, label: string): string {
    return this.transport.href(['ports', ...partsOfTask(task), label, '']);
  }

  // The notebook server.

  /** Return what the job editor is made from. */
  async editorInfo(): Promise<JobEditorInfo> {
    return this.read(vJobEditorInfo, ['job-editor']);
  }

  /** Return which files a job would bring with it. */
  async planCode(request: ISubmitRequest): Promise<IPlan> {
    return parsed(vCodePlan, await this.send('POST', ['code-plan'], request), this.trans);
  }

  /** Upload code and submit; `onProgress` is told how far the upload is. */
  submitCode(
    request: ISubmitRequest,
    onProgress: (progress: IProgress) => void,
    signal: AbortSignal
  ): Promise<ISubmitted> {
    return this.submitAt(['submit-with-code'], request, onProgress, signal);
  }

  /** Return what would come of running a file. */
  async planRun(request: IRunRequest): Promise<IRunPlan> {
    return parsed(vRunPlan, await this.send('POST', ['run-plan'], request), this.trans);
  }

  /** Upload a file with what it needs, and submit or schedule it. */
  runFile(request: IRunRequest, onProgress: (progress: IProgress) => void, signal: AbortSignal): Promise<ISubmitted> {
    return this.submitAt(['run-file'], request, onProgress, signal);
  }

  /** Return how the session of the notebook server stands. */
  async session(): Promise<ISession> {
    return this.read(vSessionInfo, ['session']);
  }

  /** Put the session's end off; return how it stands then. */
  async keepSession(): Promise<ISession> {
    return parsed(vSessionInfo, await this.send('POST', ['session', 'keep'], {}), this.trans);
  }

  /** Return what is known of the server's memory, and of a kernel that it may have cost. */
  async memory(kernel: string): Promise<MemoryInfo> {
    return this.read(vMemoryInfo, ['memory'], { kernel });
  }

  /** Return how the kernels are that are jobs. */
  async kernels(): Promise<IKernelState[]> {
    return (await this.read(vKernelStates, ['kernels'])).kernels;
  }

  /** Give an idle kernel its whole time again. */
  async keepKernel(id: string): Promise<void> {
    await this.send('POST', ['kernels', id, 'keep'], {});
  }

  /** Ask for what ends in a job, and read it line by line. */
  private async submitAt(
    path: readonly string[],
    body: unknown,
    onProgress: (progress: IProgress) => void,
    signal: AbortSignal
  ): Promise<ISubmitted> {
    const response = await this.ask({ method: 'POST', path, body, signal });
    for await (const line of linesOf(response.body!)) {
      const { progress, error, job } = parsed(vSubmitLine, json(line), this.trans);
      if (progress) {
        onProgress(progress);
      } else if (error) {
        throw new Error(error.message);
      } else if (job) {
        return job;
      }
    }
    throw new Error(this.trans.__('The connection broke off. Look into the list whether the job is there.'));
  }

  private async read<Schema extends GenericSchema>(
    schema: Schema,
    path: readonly string[],
    query: Query = {}
  ): Promise<InferOutput<Schema>> {
    return parsed(schema, json(await (await this.ask({ method: 'GET', path, query })).text()), this.trans);
  }

  /** As `read`; an answer that is as the one before is the same object, and costs no reading. */
  private async readAgain<Schema extends GenericSchema>(
    schema: Schema,
    path: readonly string[],
    query: Query = {}
  ): Promise<InferOutput<Schema>> {
    const text = await (await this.ask({ method: 'GET', path, query })).text();
    const key = addressOf(path, query);
    const before = this.answers.get(key);
    this.answers.delete(key);
    const answer = before?.text === text ? before.answer : parsed(schema, json(text), this.trans);
    this.answers.set(key, { text, answer });
    const [oldest] = this.answers.keys();
    if (this.answers.size > KEPT) {
      this.answers.delete(oldest!);
    }
    return answer;
  }

  private async send(method: IQuestion['method'], path: readonly string[], body?: unknown): Promise<unknown> {
    return json(await (await this.ask({ method, path, body })).text());
  }

  private async ask(question: IQuestion): Promise<Response> {
    return accepted(await this.transport.request(question));
  }

  /** What was answered last, by what was asked; the latest at the end. */
  private readonly answers = new Map<string, { readonly text: string; readonly answer: unknown }>();
}

function api(...path: readonly string[]): string[] {
  return ['api', 'v1', ...path];
}

function ofJob({ username, name }: IJobName, ...path: readonly string[]): string[] {
  return api('user', username, 'jobs', name, ...path);
}

function ofTask(
  job: IJobName,
  { role, index }: Pick<IAttemptTask, 'role' | 'index'>,
  ...path: readonly string[]
): string[] {
  return ofJob(job, 'taskRoles', role, 'tasks', String(index), ...path);
}

function ofSchedule({ username, name }: ISchedule, ...path: readonly string[]): string[] {
  return api('user', username, 'schedules', name, ...path);
}

/** Return a task's place in the routes beside the API. */
export function partsOfTask({ user, job, task }: ITask): string[] {
  return [user, job, task];
}

/** Return the name that follows: `train` gives `train-2`, `train-2` gives `train-3`. */
export function freshName(name: string): string {
  const [, stem, number] = /^(.*?)(?:-([1-9]\d{0,5}))?$/.exec(name)!;
  const ending = `-${number === undefined ? 2 : Number(number) + 1}`;
  return `${(stem ?? '').slice(0, LONGEST - ending.length)}${ending}`;
}

/** Find the cursor of the next page in an answer's header `Link`; `null`: there is no other page. */
function nextCursor(link: string | null): string | null {
  const address = /<([^>]*)>; *rel="next"/.exec(link ?? '')?.[1];
  return address === undefined ? null : new URLSearchParams(address.replace(/^[^?]*/, '')).get('after');
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split('\n');
    rest = lines.pop()!;
    yield* lines;
    if (done) {
      return;
    }
  }
}
