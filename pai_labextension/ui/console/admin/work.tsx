// Notebook servers and jobs of all users: filter, sort, stop, message.

import * as React from 'react';

import { IJob } from '../data/client';
import { key } from '../data/jobs';
import { shapeOf, stateLabel } from '../data/words';
import { IHost, ITranslation, Place, useHost } from '../host';
import { IEntry } from '../kit/menu';
import { State } from '../kit/status';
import { IColumn, Table } from '../kit/table';
import { durationWords, LocalTime } from '../kit/time';
import { askText, sayRefused } from './ask';
import { ISession, MOST_JOBS } from './client';
import { AdminModel, gb } from './model';

interface IPartProps {
  model: AdminModel;
}

export function sessionKey({ user, server }: ISession): string {
  return `${user}/${server}`;
}

export function sessionName({ user, server }: ISession, trans: ITranslation): string {
  return server ? `${user}/${server}` : trans.__('default server of %1', user);
}

export function Servers({ model }: IPartProps): React.ReactElement {
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
export function stopEntry(
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

export function Jobs({ model }: IPartProps): React.ReactElement {
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

export function JobLink({ job }: { job: IJob }): React.ReactElement {
  const { places } = useHost();
  const place: Place = { page: 'job', job: { username: job.username, name: job.name } };
  return <a href={places.href(place) ?? ''}>{job.name}</a>;
}
