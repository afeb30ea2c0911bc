// What administrators ask of the scheduler and of the service that watches over notebook servers.

import { GenericSchema, InferOutput } from 'valibot';

import { IJob, IJobName } from '../data/client';
import { accepted, json, parsed } from '../data/errors';
import { MaintenanceInfo, SessionRow } from '../generated/types.gen';
import { vJobDetail, vJobs, vMaintenance, vSessionRows } from '../generated/valibot.gen';
import { IQuestion, ITranslation, ITransport, Query } from '../host';

export type { MaintenanceInfo as IMaintenance, SessionRow as ISession } from '../generated/types.gen';

/** A running job with so many of its tasks on a node. */
export interface IJobOnNode extends IJobName {
  readonly node: string;
  readonly tasks: number;
}

/** What a virtual cluster shall have: per cent, and who may use it; what is left out stays as it is. */
export interface IShares {
  readonly vcCapacity: number;
  readonly vcMaxCapacity: number;
  readonly users?: readonly string[];
  readonly groups?: readonly string[];
}

/** Jobs that are asked for at most. */
export const MOST_JOBS = 2000;
/** Names that the service takes at most. */
const NAMES = 100;

/** Asks in the administrator's name; every call rejects with `ApiError` or `AnswerError`. */
export class AdminClient {
  constructor(
    private readonly transport: ITransport,
    private readonly trans: ITranslation
  ) {}

  /** List the jobs of all users that wait or run, newest first. */
  async jobs(): Promise<IJob[]> {
    return this.read(vJobs, api('jobs'), { state: 'WAITING,RUNNING', limit: MOST_JOBS });
  }

  /** Stop a job; its user reads the reason. */
  async stopJob(job: IJobName, reason: string): Promise<void> {
    const path = api('user', job.username, 'jobs', job.name, 'executionType');
    await this.ask({ method: 'PUT', path, body: { value: 'STOP', ...(reason && { reason }) } });
  }

  /** Return the nodes on which a job has tasks that have not ended: one for each task. */
  async nodesOf(job: IJobName): Promise<string[]> {
    const { taskRoles } = await this.read(vJobDetail, api('user', job.username, 'jobs', job.name));
    return Object.values(taskRoles)
      .flatMap(role => role.taskStatuses)
      .filter(({ node, taskState }) => node && (taskState === 'RUNNING' || taskState === 'WAITING'))
      .map(({ node }) => node);
  }

  /** List the running notebook servers of all users; none where no service watches over them. */
  async sessions(): Promise<SessionRow[]> {
    const answer = (await this.ask({ method: 'GET', path: ['sessions', 'sessions'] })) as { sessions?: unknown };
    return parsed(vSessionRows, answer.sessions, this.trans);
  }

  /** Stop a notebook server; its user reads the reason. */
  async endSession(session: ISessionName, reason: string): Promise<void> {
    await this.ask({ method: 'POST', path: ofSession(session, 'end'), body: { reason } });
  }

  /** Show something to the user of a notebook server. */
  async tell(session: ISessionName, text: string): Promise<void> {
    await this.ask({ method: 'POST', path: ofSession(session, 'messages'), body: { text } });
  }

  /** Return which of these are no users of the Hub (any more). */
  async strangers(names: readonly string[]): Promise<readonly string[]> {
    const body = { names: names.slice(0, NAMES) };
    const answer = (await this.ask({ method: 'POST', path: ['sessions', 'strangers'], body })) as {
      strangers: string[];
    };
    return answer.strangers;
  }

  /** Let no new task start on a node, or let them again (`null`). */
  async cordon(node: string, reason: string | null): Promise<void> {
    const body = reason === null ? { schedulable: true } : { schedulable: false, reason };
    await this.ask({ method: 'PUT', path: api('nodes', node), body });
  }

  /** List the maintenance windows that are planned or under way. */
  async maintenance(): Promise<MaintenanceInfo[]> {
    return this.read(vMaintenance, api('maintenance'));
  }

  /** Plan maintenance, or change it. Times are ms since the epoch. */
  async planMaintenance({ name, ...window }: Omit<MaintenanceInfo, 'by'>): Promise<void> {
    await this.ask({ method: 'PUT', path: api('maintenance', name), body: window });
  }

  async deleteMaintenance(name: string): Promise<void> {
    await this.ask({ method: 'DELETE', path: api('maintenance', name) });
  }

  /** Make or change a virtual cluster. */
  async setShares(name: string, shares: IShares): Promise<void> {
    await this.ask({ method: 'PUT', path: api('virtual-clusters', name), body: shares });
  }

  /** Let a virtual cluster take no jobs, or let it again. */
  async setStopped(name: string, stopped: boolean): Promise<void> {
    const body = { vcStatus: stopped ? 'stopped' : 'running' };
    await this.ask({ method: 'PUT', path: api('virtual-clusters', name, 'status'), body });
  }

  async deleteVirtualCluster(name: string): Promise<void> {
    await this.ask({ method: 'DELETE', path: api('virtual-clusters', name) });
  }

  private async read<Schema extends GenericSchema>(
    schema: Schema,
    path: readonly string[],
    query: Query = {}
  ): Promise<InferOutput<Schema>> {
    return parsed(schema, await this.ask({ method: 'GET', path, query }), this.trans);
  }

  private async ask(question: IQuestion): Promise<unknown> {
    return json(await (await accepted(await this.transport.request(question))).text());
  }
}

/** By what a notebook server is known. */
export type ISessionName = Pick<SessionRow, 'user' | 'server'>;

function api(...path: readonly string[]): string[] {
  return ['api', 'v1', ...path];
}

function ofSession({ user, server }: ISessionName, action: string): string[] {
  return ['sessions', 'users', user, ...(server ? ['servers', server] : ['server']), action];
}
