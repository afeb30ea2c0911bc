// The pages that are here: what each shows, and what it is called.

import * as React from 'react';

import { ClusterPage } from '../console/cluster/page';
import { ClusterModel } from '../console/data/cluster';
import { JobsModel, key } from '../console/data/jobs';
import { IHost, ITranslation, Place } from '../console/host';
import { JobsPage } from '../console/jobs/page';
import { QueueModel, QueuePage } from '../console/jobs/queue';
import { SchedulesModel, SchedulesPage } from '../console/jobs/schedules';

/** What is known, and stays known when another page is shown. */
export interface IModels {
  readonly jobs: JobsModel;
  readonly queue: QueueModel;
  readonly cluster: ClusterModel;
  readonly schedules: SchedulesModel;
}

/** What a page is given. */
export interface IPageProps<P extends Place = Place> {
  readonly place: P;
  readonly models: IModels;
}

/** Return what is known, the same as long as the page is loaded. */
export function useModels({ client }: IHost): IModels {
  return React.useState(() => {
    return {
      jobs: new JobsModel(client),
      queue: new QueueModel(client),
      cluster: new ClusterModel(client),
      schedules: new SchedulesModel(client)
    };
  })[0];
}

/** The pages by what a place calls them; what is not looked at first is loaded when it is. */
export const pages: Partial<Record<Place['page'], React.ComponentType<IPageProps<never>>>> = {
  jobs: ({ models }: IPageProps) => <JobsPage model={models.jobs} />,
  queue: ({ models }: IPageProps) => <QueuePage queue={models.queue} />,
  cluster: ({ models }: IPageProps) => <ClusterPage cluster={models.cluster} />,
  job: React.lazy(() => import('./job')),
  schedules: ({ models }: IPageProps) => (
    <SchedulesPage schedules={models.schedules} onStarted={() => void models.jobs.refresh()} />
  ),
  storage: React.lazy(() => import('./storage')),
  submit: React.lazy(() => import('./submit')),
  terminal: React.lazy(async () => ({ default: (await import('./access')).TerminalPlace })),
  connect: React.lazy(async () => ({ default: (await import('./access')).ConnectPlace })),
  admin: React.lazy(() => import('./admin'))
};

/** Shows a place. */
export function PageOf(props: IPageProps): React.ReactElement {
  // (each page is given its own kind of place)
  const Page = (pages[props.place.page] ?? pages.jobs) as React.ComponentType<IPageProps>;
  return <Page {...props} />;
}

/** Return what tells a place from another of the same page: where it changes, the page begins anew. */
export function keyOf(place: Place): string {
  const job = 'job' in place ? place.job : place.page === 'submit' ? place.from : undefined;
  return job ? `${place.page} ${key(job)}` : place.page;
}

/** Return what a place is called, in the bar and in the browser's tab. */
export function titleOf(place: Place, trans: ITranslation): string {
  switch (place.page) {
    case 'queue':
      return trans.__('Queue');
    case 'cluster':
      return trans.__('Cluster');
    case 'admin':
      return trans.__('Admin');
    case 'job':
      return place.job.name;
    case 'storage':
      return trans.__('Storage');
    case 'schedules':
      return trans.__('Schedules');
    case 'submit':
      return trans.__('New job');
    case 'terminal':
      return [place.task, place.job.name].filter(Boolean).join(' · ');
    case 'connect':
      return trans.__('Connect: %1', [place.task, place.job.name].filter(Boolean).join(' · '));
    default:
      return trans.__('Jobs');
  }
}
