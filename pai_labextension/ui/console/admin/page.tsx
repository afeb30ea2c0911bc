// The pages of administrators: what needs them, nodes, virtual clusters, servers and jobs of all, usage.

import * as React from 'react';

import { UsageChart } from '../cluster/usage';
import { gpuTypes, gpusOf, sum, takesJobs, untilNow } from '../data/cluster';
import { INode } from '../data/client';
import { key } from '../data/jobs';
import { useModel } from '../data/store';
import { machineLabel, machineShape } from '../data/words';
import { Place, useHost } from '../host';
import { Bar, Figures, PageError, State } from '../kit/status';
import { Table } from '../kit/table';
import { durationWords } from '../kit/time';
import { ISession } from './client';
import { VirtualClusters } from './clusters';
import { AdminModel } from './model';
import { Nodes } from './nodes';
import { JobLink, Jobs, Servers, sessionKey, sessionName, stopEntry } from './work';

/** The parts of the page, as addresses name them. */
export const PARTS = ['overview', 'nodes', 'clusters', 'servers', 'jobs', 'usage'] as const;
export type Part = (typeof PARTS)[number];

interface IPartProps {
  model: AdminModel;
}

/** ms before its end from which on a server is shown among what needs somebody. */
const SOON = 3_600_000;

export function AdminPage({ model, part }: IPartProps & { part: Part }): React.ReactElement {
  const { trans, places } = useHost();
  useModel(model);
  const titles: Record<Part, string> = {
    overview: trans.__('Overview'),
    nodes: trans.__('Nodes'),
    clusters: trans.__('Virtual clusters'),
    servers: trans.__('Servers'),
    jobs: trans.__('Jobs'),
    usage: trans.__('Usage')
  };
  const Shown = SHOWN[part];
  return (
    <div className="pai-Admin pai-Scrolled" tabIndex={0} role="region" aria-label={titles[part]}>
      <nav className="pai-Admin-parts" aria-label={trans.__('Administration')}>
        {PARTS.map(one => {
          const place: Place = { page: 'admin', ...(one === 'overview' ? {} : { show: one }) };
          return (
            <a
              key={one}
              href={places.href(place) ?? ''}
              aria-current={one === part ? 'page' : undefined}
              onClick={event => {
                if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
                  event.preventDefault();
                  places.open(place);
                }
              }}
            >
              {titles[one]}
            </a>
          );
        })}
      </nav>
      <PageError text={model.error || null} />
      <Shown model={model} />
    </div>
  );
}

const SHOWN: Record<Part, React.ComponentType<IPartProps>> = {
  overview: Overview,
  nodes: Nodes,
  clusters: VirtualClusters,
  servers: Servers,
  jobs: Jobs,
  usage: Usage
};

// What needs somebody.

function Overview({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const nodes = model.cluster.machines.answer;
  const { jobs } = model;
  if (nodes === null || model.all.answer === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  const gpus = sum(nodes, gpusOf);
  const used = gpuTypes(nodes).reduce((all, type) => all + type.used, 0);
  const down = nodes.filter(node => !takesJobs(node));
  const stuck = model.stuck.answer ?? [];
  const ending = (model.sessions.answer ?? []).filter(({ endTime, now }) => endTime !== null && endTime - now < SOON);
  const idle = idleOf(model);
  const figures = [
    [trans.__('GPUs in use'), `${used} / ${gpus.total}`],
    [trans.__('GPUs idle but allocated'), String(idle.reduce((all, one) => all + one.gpus, 0))],
    [trans.__('Nodes ready'), `${nodes.length - down.length} / ${nodes.length}`],
    [trans.__('Jobs in the queue'), String(jobs.filter(job => job.state === 'WAITING').length)]
  ] as const;
  const nothing = down.length + stuck.length + ending.length + idle.length === 0;
  return (
    <>
      <Figures large figures={figures} />
      {nothing && <p role="status">{trans.__('Nothing needs your attention.')}</p>}
      {down.length > 0 && (
        <section>
          <h2>{trans.__('Nodes that take no tasks')}</h2>
          <ul className="pai-Admin-list">
            {down.map(node => (
              <li key={node.name}>
                <b>{node.name}</b> <State shape={machineShape(node)}>{machineLabel(node, trans, language)}</State>
              </li>
            ))}
          </ul>
        </section>
      )}
      {idle.length > 0 && (
        <section>
          <h2>{trans.__('GPUs idle but allocated')}</h2>
          <Table
            label={trans.__('GPUs idle but allocated')}
            rows={idle}
            none=""
            keyOf={key}
            nameOf={one => one.title}
            columns={[
              { title: trans.__('User'), cell: one => one.username, order: one => one.username },
              { title: trans.__('Name'), cell: one => one.title, order: one => one.title },
              { title: trans.__('GPUs'), cell: one => one.gpus, order: one => -one.gpus },
              { title: trans.__('Idle for'), cell: one => one.idle, order: one => one.since }
            ]}
            actions={one => [stopEntry(one.session ? [one.session] : [], one.session ? [] : [one], model, host)]}
          />
        </section>
      )}
      {stuck.length > 0 && (
        <section>
          <h2>{trans.__('Jobs that cannot start')}</h2>
          <ul className="pai-Admin-list">
            {stuck.map(({ job, reason }) => (
              <li key={key(job)}>
                <JobLink job={job} /> {reason}
              </li>
            ))}
          </ul>
        </section>
      )}
      {ending.length > 0 && (
        <section>
          <h2>{trans.__('Servers that stop within an hour')}</h2>
          <ul className="pai-Admin-list">
            {ending.map(one => (
              <li key={sessionKey(one)}>
                <b>{sessionName(one, trans)}</b>{' '}
                {trans.__('stops in %1', durationWords(Math.max(0, one.endTime! - one.now), trans))}
                {one.why && ` · ${one.why}`}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

interface IIdle {
  readonly username: string;
  readonly name: string;
  readonly title: string;
  readonly gpus: number;
  readonly idle: string;
  readonly since: number;
  readonly session: ISession | null;
}

/** Return what idles on GPUs: notebook servers and jobs. */
function idleOf(model: AdminModel): IIdle[] {
  const servers = model.idleSessions.map(session => ({
    username: session.user,
    name: session.job,
    title: session.server ? `${session.user}/${session.server}` : session.user,
    gpus: session.gpus,
    idle: session.idleSince === null ? '' : minutes(session.now - session.idleSince),
    since: session.idleSince ?? 0,
    session
  }));
  const jobs = (model.idle.answer ?? []).map(job => ({
    username: job.username,
    name: job.name,
    title: job.name,
    gpus: job.totalGpuNumber,
    idle: '> 10 min',
    since: 0,
    session: null
  }));
  return [...servers, ...jobs];
}

function minutes(ms: number): string {
  return `${Math.max(0, Math.floor(ms / 60_000))} min`;
}

// Usage, as far as it is kept.

interface IUse {
  readonly user: string;
  readonly gpus: number;
  readonly servers: number;
  readonly running: number;
  readonly waiting: number;
}

function Usage({ model }: IPartProps): React.ReactElement {
  const { trans } = useHost();
  const { machines, usage } = model.cluster;
  const nodes = machines.answer;
  if (nodes === null || model.all.answer === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  const types = gpuTypes(nodes);
  return (
    <>
      {types.map(({ type, used, total }) => (
        <Bar key={type} label={type} text={trans.__('%1 of %2 used', used, total)} used={used} total={total} />
      ))}
      {usage.answer && <UsageChart usage={untilNow(usage.answer, types, machines.answeredAt)} />}
      <section>
        <h2>{trans.__('Users')}</h2>
        <Table
          label={trans.__('Users')}
          rows={usesOf(model, nodes)}
          keyOf={one => one.user}
          nameOf={one => one.user}
          none={trans.__('Nobody uses anything now.')}
          columns={[
            { title: trans.__('User'), cell: one => one.user, order: one => one.user },
            { title: trans.__('GPUs in use'), cell: one => one.gpus, order: one => -one.gpus },
            { title: trans.__('Servers'), cell: one => one.servers, order: one => -one.servers },
            { title: trans.__('Running'), cell: one => one.running, order: one => -one.running },
            { title: trans.__('Waiting'), cell: one => one.waiting, order: one => -one.waiting }
          ]}
        />
      </section>
    </>
  );
}

/** Return what each user has now. */
function usesOf(model: AdminModel, nodes: readonly INode[]): IUse[] {
  const uses = new Map<string, { -readonly [Name in keyof IUse]: IUse[Name] }>();
  const of = (user: string) => {
    const use = uses.get(user) ?? { user, gpus: 0, servers: 0, running: 0, waiting: 0 };
    uses.set(user, use);
    return use;
  };
  for (const { user, job } of nodes.flatMap(node => node.gpus)) {
    const holder = user ?? job?.split('~')[0];
    if (holder) {
      of(holder).gpus += 1;
    }
  }
  model.sessions.answer?.forEach(({ user }) => (of(user).servers += 1));
  model.jobs.forEach(job => (of(job.username)[job.state === 'RUNNING' ? 'running' : 'waiting'] += 1));
  return [...uses.values()];
}
