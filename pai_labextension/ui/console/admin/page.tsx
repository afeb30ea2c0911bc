// The pages of administrators: what needs them, nodes, virtual clusters, servers and jobs of all, usage.

import * as React from 'react';

import { rulesOf } from '../cluster/page';
import { UsageChart } from '../cluster/usage';
import { gpuTypes, gpusOf, IVirtualCluster, share, sum, takesJobs, untilNow } from '../data/cluster';
import { IJob, INode } from '../data/client';
import { messageOf } from '../data/errors';
import { key } from '../data/jobs';
import { useModel } from '../data/store';
import { machineLabel, machineShape, shapeOf, shownState, stateLabel } from '../data/words';
import { IHost, ITranslation, Place, useHost } from '../host';
import { TextButton } from '../kit/button';
import { confirm } from '../kit/dialog';
import { IEntry } from '../kit/menu';
import { Bar, Figures, PageError, State } from '../kit/status';
import { IColumn, Table } from '../kit/table';
import { durationWords, LocalTime } from '../kit/time';
import { askMaintenance, askShares, askText, sayRefused } from './ask';
import { IMaintenance, ISession, MOST_JOBS } from './client';
import { AdminModel } from './model';

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

// Nodes.

function Nodes({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const nodes = model.cluster.machines.answer;
  const amount = (node: INode, kind: 'cpus' | 'memoryMB') => {
    const { free, total } = share(node, kind);
    return kind === 'cpus' ? `${total - free} / ${total}` : `${gb(total - free)} / ${gb(total)} GB`;
  };
  const columns: IColumn<INode>[] = [
    { title: trans.__('Node'), cell: node => node.name, order: node => node.name },
    {
      title: trans.__('State'),
      cell: node => <State shape={machineShape(node)}>{machineLabel(node, trans, language)}</State>,
      order: node => shownState(node)
    },
    {
      title: trans.__('GPUs in use'),
      cell: node =>
        gpusOf(node)
          .map(({ type, free, total }) => `${type} ${total - free} / ${total}`)
          .join(', ') || '–',
      order: node => -node.gpus.filter(gpu => gpu.job !== null).length
    },
    { title: trans.__('CPUs in use'), cell: node => amount(node, 'cpus'), order: node => -node.used.cpus },
    { title: trans.__('Memory in use'), cell: node => amount(node, 'memoryMB'), order: node => -node.used.memoryMB }
  ];
  if (nodes === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  return (
    <>
      <Table
        label={trans.__('Nodes')}
        rows={nodes}
        columns={columns}
        keyOf={node => node.name}
        nameOf={node => node.name}
        none={trans.__('No machine has joined yet.')}
        actions={node => nodeEntries([node], model, host)}
        actionsOfMany={many => nodeEntries(many, model, host)}
      />
      <Windows model={model} />
    </>
  );
}

/** What maintenance is planned or under way. */
function Windows({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const time = (ms: number) => <LocalTime time={new Date(ms)} language={language} form="minutes" />;
  const forget = async (one: IMaintenance) => {
    const meant = await confirm(host, {
      title: trans.__('Delete maintenance “%1”?', one.name),
      text: trans.__('Tasks may start again on %1.', one.nodes.join(', ')),
      accept: trans.__('Delete'),
      warn: true
    });
    if (meant) {
      await sayRefused(
        host,
        await model.withAll(
          [one],
          ({ name }) => name,
          ({ name }) => model.admin.deleteMaintenance(name)
        )
      );
    }
  };
  return (
    <section>
      <h2>{trans.__('Maintenance')}</h2>
      <Table
        label={trans.__('Maintenance')}
        rows={model.maintenance.answer ?? []}
        keyOf={one => one.name}
        nameOf={one => one.name}
        none={trans.__('No maintenance is planned. Choose nodes above to plan one.')}
        columns={[
          { title: trans.__('Name'), cell: one => one.name, order: one => one.name },
          { title: trans.__('Nodes'), cell: one => one.nodes.join(', '), order: one => one.nodes.join(' ') },
          { title: trans.__('Beginning'), cell: one => time(one.begin), order: one => one.begin },
          { title: trans.__('End'), cell: one => time(one.end), order: one => one.end },
          { title: trans.__('Reason'), cell: one => one.reason, order: one => one.reason }
        ]}
        actions={one => [{ label: trans.__('Delete'), icon: 'delete', act: () => void forget(one) }]}
      />
    </section>
  );
}

function nodeEntries(nodes: readonly INode[], model: AdminModel, host: IHost): IEntry[] {
  const { trans } = host;
  const names = nodes.map(node => node.name).join(', ');
  const withAll = async (act: (node: INode) => Promise<void>) =>
    sayRefused(host, await model.withAll(nodes, node => node.name, act));
  const cordon = async () => {
    const reason = await askText(host, {
      title: trans.__('Cordon %1?', names),
      text: trans.__('No new task starts there. What runs there goes on.'),
      label: trans.__('Reason, shown to users whose jobs wait'),
      needed: true,
      accept: trans.__('Cordon')
    });
    if (reason) {
      await withAll(node => model.admin.cordon(node.name, reason));
    }
  };
  const drain = async () => {
    const hits = await model.jobsOn(nodes.map(node => node.name));
    const stopped = new Map(hits.map(job => [key(job), job]));
    const reason = await askText(host, {
      title: trans.__('Drain %1?', names),
      text:
        stopped.size === 0
          ? trans.__('No new task starts there. Nothing runs there now.')
          : trans.__('No new task starts there, and these jobs are stopped, with their tasks on other nodes:'),
      hits: hits.map(({ tasks, username, node, name }) =>
        trans._n('%1 task of %2 on %3: %4', '%1 tasks of %2 on %3: %4', tasks, username, node, name)
      ),
      label: trans.__('Reason, shown to users whose jobs wait'),
      needed: true,
      accept:
        stopped.size === 0
          ? trans.__('Drain')
          : trans._n('Drain and stop %1 job', 'Drain and stop %1 jobs', stopped.size),
      warn: true
    });
    if (reason) {
      await withAll(node => model.admin.cordon(node.name, reason));
      await sayRefused(
        host,
        await model.withAll(
          [...stopped.values()],
          job => job.name,
          job => model.stop(job, reason)
        )
      );
    }
  };
  const plan = async () => {
    const window = await askMaintenance(
      host,
      nodes.map(node => node.name),
      Date.now()
    );
    if (window) {
      await sayRefused(
        host,
        await model.withAll(
          [window],
          ({ name }) => name,
          one => model.admin.planMaintenance(one)
        )
      );
    }
  };
  // (maintenance opens a node by itself)
  const isClosed = nodes.every(node => node.closed !== null && node.closed.until === undefined);
  return [
    isClosed
      ? {
          label: trans.__('Uncordon'),
          icon: 'check',
          act: () => void withAll(node => model.admin.cordon(node.name, null))
        }
      : { label: trans.__('Cordon'), icon: 'close', act: () => void cordon() },
    {
      label: trans.__('Drain'),
      icon: 'down',
      act: () => void drain().catch((error: unknown) => sayRefused(host, [messageOf(error)]))
    },
    { label: trans.__('Plan maintenance'), icon: 'add', act: () => void plan() }
  ];
}

// Virtual clusters.

function VirtualClusters({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const clusters = model.cluster.virtualClusters.answer;
  if (clusters === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  const edit = async (one: IVirtualCluster | null) => {
    const given = await askShares(host, clusters, one);
    if (given) {
      await sayRefused(
        host,
        await model.withAll(
          [given],
          ({ name }) => name,
          ({ name, shares }) => model.admin.setShares(name, shares)
        )
      );
    }
  };
  const rules = (cluster: IVirtualCluster) => rulesOf(cluster, trans, language).join(' · ');
  return (
    <>
      <Table
        label={trans.__('Virtual clusters')}
        rows={clusters}
        keyOf={one => one.name}
        nameOf={one => one.name}
        none=""
        columns={[
          { title: trans.__('Name'), cell: one => one.name, order: one => one.name },
          {
            title: trans.__('In use'),
            cell: one => `${one.used} / ${one.most} ${one.of === 'GPUs' ? trans.__('GPUs') : trans.__('CPUs')}`,
            order: one => -one.used
          },
          { title: trans.__('Running'), cell: one => one.running, order: one => -one.running },
          { title: trans.__('Waiting'), cell: one => one.waiting, order: one => -one.waiting },
          { title: trans.__('Guaranteed'), cell: one => `${one.capacity} %`, order: one => -one.capacity },
          { title: trans.__('Maximum'), cell: one => `${one.maxCapacity} %`, order: one => -one.maxCapacity },
          {
            title: trans.__('Policy'),
            cell: one => (one.stopped ? `${trans.__('stopped: takes no jobs')} · ${rules(one)}` : rules(one))
          }
        ]}
        actions={one => clusterEntries(one, edit, model, host)}
      />
      <TextButton icon="add" onClick={() => void edit(null)}>
        {trans.__('New virtual cluster')}
      </TextButton>
    </>
  );
}

function clusterEntries(
  one: IVirtualCluster,
  edit: (one: IVirtualCluster | null) => Promise<void>,
  model: AdminModel,
  host: IHost
): IEntry[] {
  const { trans } = host;
  const act = async (does: () => Promise<void>) => sayRefused(host, await model.withAll([one], () => one.name, does));
  const stop = async () => {
    const meant = await confirm(host, {
      title: trans.__('Stop virtual cluster “%1”?', one.name),
      text: trans._n(
        'It takes no jobs any more. %1 job goes on running, those that wait go on waiting.',
        'It takes no jobs any more. %1 jobs go on running, those that wait go on waiting.',
        one.running
      ),
      accept: trans.__('Stop'),
      warn: true
    });
    if (meant) {
      await act(() => model.admin.setStopped(one.name, true));
    }
  };
  const remove = async () => {
    const meant = await confirm(host, {
      title: trans.__('Delete virtual cluster “%1”?', one.name),
      text: trans.__('Its quota of %1 % goes to “default”.', one.capacity),
      accept: trans.__('Delete'),
      warn: true
    });
    if (meant) {
      await act(() => model.admin.deleteVirtualCluster(one.name));
    }
  };
  // (it has what the others leave)
  return one.name === 'default'
    ? [{ label: trans.__('New virtual cluster'), icon: 'add', act: () => void edit(null) }]
    : [
        { label: trans.__('Change quota and users'), icon: 'save', act: () => void edit(one) },
        one.stopped
          ? {
              label: trans.__('Start'),
              icon: 'check',
              act: () => void act(() => model.admin.setStopped(one.name, false))
            }
          : { label: trans.__('Stop'), icon: 'stop', act: () => void stop() },
        { label: trans.__('Delete'), icon: 'delete', act: () => void remove() }
      ];
}

// Notebook servers and jobs of all.

function sessionKey({ user, server }: ISession): string {
  return `${user}/${server}`;
}

function sessionName({ user, server }: ISession, trans: ITranslation): string {
  return server ? `${user}/${server}` : trans.__('default server of %1', user);
}

function Servers({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans } = host;
  const sessions = model.sessions.answer;
  if (sessions === null) {
    return model.sessions.error ? <></> : <p role="status">{trans.__('One moment …')}</p>;
  }
  const since = (ms: number | null, now: number) => (ms === null ? '–' : durationWords(Math.max(0, now - ms), trans));
  const percent = (value: number | null) => (value === null ? '–' : `${Math.round(value)} %`);
  const columns: IColumn<ISession>[] = [
    { title: trans.__('User'), cell: one => one.user, order: one => one.user },
    { title: trans.__('Server'), cell: one => one.server || trans.__('default'), order: one => one.server },
    { title: trans.__('GPUs'), cell: one => one.gpus, order: one => -one.gpus },
    { title: trans.__('GPU use'), cell: one => percent(one.use.gpuPercent), order: one => one.use.gpuPercent ?? 1000 },
    { title: trans.__('CPU'), cell: one => percent(one.use.cpuPercent), order: one => one.use.cpuPercent ?? 1e6 },
    {
      title: trans.__('Memory'),
      cell: one => (one.use.memoryMB === null ? '–' : `${gb(one.use.memoryMB)} GB`),
      order: one => -(one.use.memoryMB ?? 0)
    },
    { title: trans.__('Running for'), cell: one => since(one.startedTime, one.now), order: one => one.startedTime },
    { title: trans.__('Idle for'), cell: one => since(one.idleSince, one.now), order: one => one.idleSince ?? 1e15 },
    {
      title: trans.__('Stops in'),
      cell: one => (one.endTime === null ? '–' : durationWords(Math.max(0, one.endTime - one.now), trans)),
      order: one => one.endTime ?? 1e15
    }
  ];
  return (
    <Table
      label={trans.__('Servers')}
      rows={sessions}
      columns={columns}
      keyOf={sessionKey}
      nameOf={one => sessionName(one, trans)}
      none={trans.__('No notebook server is running.')}
      actions={one => sessionEntries([one], model, host)}
      actionsOfMany={many => sessionEntries(many, model, host)}
    />
  );
}

function sessionEntries(sessions: readonly ISession[], model: AdminModel, host: IHost): IEntry[] {
  const { trans } = host;
  const names = sessions.map(one => sessionName(one, trans));
  const tell = async () => {
    const text = await askText(host, {
      title: trans.__('Send message'),
      text: trans._n('JupyterLab shows it to the user of:', 'JupyterLab shows it to the users of:', sessions.length),
      hits: names,
      label: trans.__('Message'),
      needed: true,
      accept: trans.__('Send message')
    });
    if (text) {
      await sayRefused(
        host,
        await model.withAll(
          sessions,
          one => sessionName(one, trans),
          one => model.admin.tell(one, text)
        )
      );
    }
  };
  return [
    { label: trans.__('Send message'), icon: 'upload', act: () => void tell() },
    stopEntry(sessions, [], model, host)
  ];
}

/** Stops notebook servers and jobs, once it was asked, with a reason. */
function stopEntry(
  sessions: readonly ISession[],
  jobs: readonly Pick<IJob, 'username' | 'name'>[],
  model: AdminModel,
  host: IHost
): IEntry {
  const { trans } = host;
  const all = [
    ...sessions.map(one => ({
      title: sessionName(one, trans),
      stop: (why: string) => model.admin.endSession(one, why)
    })),
    ...jobs.map(job => ({
      title: trans.__('“%1” of %2', job.name, job.username),
      stop: (why: string) => model.admin.stopJob(job, why)
    }))
  ];
  const act = async () => {
    const reason = await askText(host, {
      title:
        sessions.length > 0
          ? trans._n('Stop %1 server?', 'Stop %1 servers?', sessions.length)
          : trans._n('Stop %1 job?', 'Stop %1 jobs?', jobs.length),
      text:
        sessions.length > 0
          ? trans.__('What its kernels have not saved is lost. Files are kept.')
          : trans.__('What its tasks have not saved yet is lost. Logs are kept. This cannot be undone.'),
      hits: all.map(({ title }) => title),
      label: trans.__('Reason, shown to the user'),
      accept: sessions.length > 0 ? trans.__('Stop') : trans._n('Stop %1 job', 'Stop %1 jobs', jobs.length),
      warn: true
    });
    if (reason !== null) {
      await sayRefused(
        host,
        await model.withAll(
          all,
          ({ title }) => title,
          ({ stop }) => stop(reason)
        )
      );
    }
  };
  return { label: trans.__('Stop'), icon: 'stop', act: () => void act() };
}

function Jobs({ model }: IPartProps): React.ReactElement {
  const host = useHost();
  const { trans, language } = host;
  const all = model.all.answer;
  if (all === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  const columns: IColumn<IJob>[] = [
    { title: trans.__('Job'), cell: job => <JobLink job={job} />, order: job => job.name },
    {
      title: trans.__('User'),
      cell: job => (
        <>
          {job.username}
          {all.strangers.has(job.username) && (
            <span className="pai-mod-secondary">{trans.__('not a user of the Hub')}</span>
          )}
        </>
      ),
      order: job => job.username
    },
    {
      title: trans.__('State'),
      cell: job => (
        <State shape={shapeOf(job)}>
          {stateLabel(job, trans)}
          {job.queuePlace !== null && `, ${trans.__('place %1', job.queuePlace)}`}
        </State>
      ),
      order: job => `${job.state} ${String(job.queuePlace ?? 0).padStart(9, '0')}`
    },
    { title: trans.__('Virtual cluster'), cell: job => job.virtualCluster, order: job => job.virtualCluster },
    { title: trans.__('GPUs'), cell: job => job.totalGpuNumber, order: job => -job.totalGpuNumber },
    { title: trans.__('Tasks'), cell: job => job.totalTaskNumber, order: job => -job.totalTaskNumber },
    {
      title: trans.__('Submitted'),
      cell: job => <LocalTime time={new Date(job.createdTime)} language={language} form="minutes" />,
      order: job => -job.createdTime
    }
  ];
  return (
    <>
      {all.jobs.length >= MOST_JOBS && (
        <p role="status">{trans.__('Only the newest %1 jobs are listed.', MOST_JOBS)}</p>
      )}
      <Table
        label={trans.__('Jobs')}
        rows={model.jobs}
        columns={columns}
        keyOf={key}
        nameOf={job => job.name}
        none={trans.__('No job waits or runs.')}
        actions={job => [stopEntry([], [job], model, host)]}
        actionsOfMany={jobs => [stopEntry([], jobs, model, host)]}
      />
    </>
  );
}

function JobLink({ job }: { job: IJob }): React.ReactElement {
  const { places } = useHost();
  const place: Place = { page: 'job', job: { username: job.username, name: job.name } };
  return <a href={places.href(place) ?? ''}>{job.name}</a>;
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

function gb(megabytes: number): string {
  return (megabytes / 1024).toFixed(megabytes < 10_240 ? 1 : 0);
}
