// What administrators look after: the jobs and notebook servers of all users, what idles on GPUs, maintenance.

import { Client, IJob } from '../data/client';
import { ClusterModel } from '../data/cluster';
import { messageOf } from '../data/errors';
import { key } from '../data/jobs';
import { fewAtOnce, IDisposable, IShownModel, Polled, Signal } from '../data/store';
import { AdminClient, IJobOnNode, IMaintenance, ISession } from './client';

/** ms between two questions; and between two about what jobs use, of which each is asked about. */
const INTERVAL = 10_000;
const USE_INTERVAL = 60_000;
/** Of so many jobs it is asked what they use, or why they wait, and of so many tasks of each. */
const ASKED = 30;
const TASKS = 4;
/** ms of the past that count, and per cent of a GPU below which it idles. */
const IDLE_FOR = 10 * 60_000;
const IDLE_BELOW = 5;
/** Requests at once: a browser has six connections to a server. */
const AT_ONCE = 4;

/** The jobs of all users that wait or run; `strangers`: users that the Hub does not know (any more). */
interface IAllJobs {
  readonly jobs: readonly IJob[];
  readonly strangers: ReadonlySet<string>;
}

/** A job that waits, and cannot start as things are. */
export interface IStuckJob {
  readonly job: IJob;
  readonly reason: string;
}

export class AdminModel implements IShownModel, IDisposable {
  readonly sessions: Polled<readonly ISession[]>;
  readonly all: Polled<IAllJobs>;
  readonly maintenance: Polled<readonly IMaintenance[]>;
  /** Jobs whose GPUs nobody has used for ten minutes. */
  readonly idle: Polled<readonly IJob[]>;
  readonly stuck: Polled<readonly IStuckJob[]>;

  constructor(
    readonly admin: AdminClient,
    private readonly client: Client,
    readonly cluster: ClusterModel
  ) {
    this.sessions = new Polled(() => admin.sessions(), INTERVAL);
    this.all = new Polled(async () => {
      const jobs = await admin.jobs();
      return { jobs, strangers: await this.strangersAmong(jobs) };
    }, INTERVAL);
    this.maintenance = new Polled(() => admin.maintenance(), INTERVAL);
    this.idle = new Polled(() => this.idleJobs(), USE_INTERVAL);
    this.stuck = new Polled(() => this.stuckJobs(), USE_INTERVAL);
    this.parts = [this.sessions, this.all, this.maintenance, this.idle, this.stuck, cluster];
    this.deaf = this.parts.map(part => part.changed.connect(() => this.changed.emit()));
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.all.isDisposed;
  }

  /** Why the last questions had no answer; empty when they had one. */
  get error(): string {
    const { sessions, all, maintenance, cluster } = this;
    const found = [cluster.machines, cluster.virtualClusters, all, sessions, maintenance].map(({ error }) => error);
    return [...new Set(found.filter(Boolean))].join(' ');
  }

  /** The jobs that are no notebook servers. */
  get jobs(): readonly IJob[] {
    const servers = new Set((this.sessions.answer ?? []).map(({ user, job }) => key({ username: user, name: job })));
    return (this.all.answer?.jobs ?? []).filter(job => !servers.has(key(job)));
  }

  /** The notebook servers whose GPUs are not used now. */
  get idleSessions(): readonly ISession[] {
    return (this.sessions.answer ?? []).filter(
      ({ gpus, use }) => gpus > 0 && use.gpuPercent !== null && use.gpuPercent < IDLE_BELOW
    );
  }

  /** Find the jobs that have tasks on some nodes, notebook servers among them; one for each node. */
  async jobsOn(nodes: readonly string[]): Promise<IJobOnNode[]> {
    const found: IJobOnNode[] = [];
    const running = (await this.admin.jobs()).filter(job => job.state === 'RUNNING' || job.subState === 'STARTING');
    await fewAtOnce(running, AT_ONCE, async ({ username, name }) => {
      const places = await this.admin.nodesOf({ username, name });
      for (const node of nodes) {
        const tasks = places.filter(place => place === node).length;
        if (tasks > 0) {
          found.push({ username, name, node, tasks });
        }
      }
    });
    const order = (job: IJobOnNode) => `${job.node} ${key(job)}`;
    return found.sort((one, other) => (order(one) < order(other) ? -1 : 1));
  }

  /** Stop jobs; one that is a notebook server is ended as one, so that the Hub knows. */
  async stop(job: { username: string; name: string }, reason: string): Promise<void> {
    const session = this.sessions.answer?.find(({ user, job: name }) => user === job.username && name === job.name);
    await (session ? this.admin.endSession(session, reason) : this.admin.stopJob(job, reason));
  }

  /** Do something with each of some things, and ask again; return what was refused, a line each. */
  async withAll<Item>(
    items: readonly Item[],
    nameOf: (item: Item) => string,
    act: (item: Item) => Promise<void>
  ): Promise<string[]> {
    const refused: string[] = [];
    await fewAtOnce(items, AT_ONCE, async item => {
      try {
        await act(item);
      } catch (error) {
        refused.push(`${nameOf(item)}: ${messageOf(error)}`);
      }
    });
    void this.refresh();
    return refused;
  }

  /** Ask now; resolves when answered. */
  async refresh(): Promise<void> {
    const { sessions, all, maintenance, cluster } = this;
    await Promise.all([sessions, all, maintenance, cluster].map(part => part.refresh()));
  }

  setShown(shown: boolean): void {
    this.parts.forEach(part => part.setShown(shown));
  }

  /** (The cluster is others' too.) */
  dispose(): void {
    this.deaf.forEach(stop => stop());
    [this.sessions, this.all, this.maintenance, this.idle, this.stuck].forEach(part => part.dispose());
    this.changed.clear();
  }

  private async strangersAmong(jobs: readonly IJob[]): Promise<ReadonlySet<string>> {
    const names = [...new Set(jobs.map(job => job.username))];
    try {
      return new Set(names.length > 0 ? await this.admin.strangers(names) : []);
    } catch {
      return new Set(); // there is no such service, or it does not answer: then nobody is called one
    }
  }

  /** Resolves when it is known which jobs there are. */
  private async jobsKnown(): Promise<void> {
    await Promise.all([this.all, this.sessions].filter(part => part.answer === null).map(part => part.refresh()));
  }

  private async idleJobs(): Promise<readonly IJob[]> {
    const found: IJob[] = [];
    await this.jobsKnown();
    const held = this.jobs.filter(job => job.state === 'RUNNING' && job.totalGpuNumber > 0);
    await fewAtOnce(held.slice(0, ASKED), AT_ONCE, async job => {
      if (await this.idles(job)) {
        found.push(job);
      }
    });
    return found;
  }

  private async idles(job: IJob): Promise<boolean> {
    const { taskRoles } = await this.client.detail(job);
    const tasks = Object.entries(taskRoles).flatMap(([role, { taskStatuses }]) =>
      taskStatuses.map(({ taskIndex }) => ({ role, index: taskIndex }))
    );
    const after = Date.now() - IDLE_FOR;
    let points = 0;
    for (const task of tasks.slice(0, TASKS)) {
      const { series } = await this.client.metrics(job, task, after);
      const used = (series.gpuPercent ?? []).map(point => point[1] ?? 0);
      if (used.some(percent => percent >= IDLE_BELOW)) {
        return false;
      }
      points += used.length;
    }
    return points > 0;
  }

  private async stuckJobs(): Promise<readonly IStuckJob[]> {
    const found: IStuckJob[] = [];
    await this.jobsKnown();
    const waiting = this.jobs.filter(job => job.state === 'WAITING');
    // (those that have waited longest)
    await fewAtOnce(waiting.slice(-ASKED), AT_ONCE, async job => {
      const { jobStatus } = await this.client.detail(job);
      if (jobStatus.neverFits) {
        found.push({ job, reason: jobStatus.waitingReason });
      }
    });
    return found;
  }

  private readonly parts: readonly IShownModel[];
  private readonly deaf: (() => void)[];
}

/** Write megabytes as gigabytes. */
export function gb(megabytes: number): string {
  return (megabytes / 1024).toFixed(megabytes < 10_240 ? 1 : 0);
}
