// The frame of all pages: the bar with the ways to them, and what is said of a login that has ended.

import * as React from 'react';

import { JobPorts } from '../console/access/ports';
import { ClusterPage } from '../console/cluster/page';
import { ClusterModel } from '../console/data/cluster';
import { JobsModel, key } from '../console/data/jobs';
import { useSignal } from '../console/data/store';
import { HostProvider, IHost, Place } from '../console/host';
import { JobsPage } from '../console/jobs/page';
import { QueueModel, QueuePage } from '../console/jobs/queue';
import { SchedulesModel } from '../console/jobs/schedules';
import { IPageFacts, WebTransport } from './host';
import { Router } from './router';

const JobPlace = React.lazy(() => import('./job'));

interface IShellProps {
  host: IHost;
  transport: WebTransport;
  router: Router;
  facts: IPageFacts;
}

/** What is known, and stays known when another page is shown. */
function useModels({ client }: IHost) {
  return React.useState(() => {
    const jobs = new JobsModel(client);
    return {
      jobs,
      ports: new JobPorts(jobs, client),
      queue: new QueueModel(client),
      cluster: new ClusterModel(client),
      schedules: new SchedulesModel(client)
    };
  })[0];
}

export function Shell({ host, transport, router, facts }: IShellProps): React.ReactElement {
  useSignal(router.changed);
  const [loggedOut, setLoggedOut] = React.useState(false);
  React.useEffect(() => transport.loggedOut.connect(setLoggedOut), [transport]);
  const models = useModels(host);
  const { trans } = host;
  const { place } = router;
  const title = titleOf(place, host);
  React.useEffect(() => {
    document.title = `${title} · PAI`;
  }, [title]);
  return (
    <HostProvider value={host}>
      <Bar {...{ host, router, facts, place }} />
      {loggedOut && (
        <p className="pai-Web-login" role="alert">
          {trans.__('Your login has expired.')} <a href="">{trans.__('Log in again')}</a>
        </p>
      )}
      <main className="pai-Web-main" aria-label={title}>
        {place.page === 'queue' ? (
          <QueuePage queue={models.queue} />
        ) : place.page === 'cluster' ? (
          <ClusterPage cluster={models.cluster} />
        ) : place.page === 'job' ? (
          <React.Suspense fallback={<p role="status">{trans.__('Asking for the job …')}</p>}>
            <JobPlace key={key(place.job)} job={place.job} tab={place.tab ?? ''} jobs={models.jobs} />
          </React.Suspense>
        ) : (
          <JobsPage model={models.jobs} ports={models.ports} schedules={models.schedules} />
        )}
      </main>
    </HostProvider>
  );
}

function titleOf(place: Place, { trans }: IHost): string {
  switch (place.page) {
    case 'queue':
      return trans.__('Queue');
    case 'cluster':
      return trans.__('Cluster');
    case 'job':
      return place.job.name;
    default:
      return trans.__('My jobs');
  }
}

/** The ways to the pages, to those of the Hub, and out. */
function Bar(props: { host: IHost; router: Router; facts: IPageFacts; place: Place }): React.ReactElement {
  const { host, router, facts, place } = props;
  const { trans } = host;
  const pages: [Place, string][] = [
    [{ page: 'jobs' }, trans.__('My jobs')],
    [{ page: 'queue' }, trans.__('Queue')],
    [{ page: 'cluster' }, trans.__('Cluster')]
  ];
  return (
    <header className="pai-WebBar">
      <a className="pai-WebBar-mark" href={facts.prefix}>
        PAI
      </a>
      <nav aria-label={trans.__('Pages')}>
        {pages.map(([to, label]) => (
          <a
            key={to.page}
            href={router.href(to)!}
            aria-current={to.page === (place.page === 'job' ? 'jobs' : place.page) ? 'page' : undefined}
            onClick={event => {
              // (a new tab is the browser's own business)
              if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
                event.preventDefault();
                router.open(to);
              }
            }}
          >
            {label}
          </a>
        ))}
        <a href={`${facts.hub}home`}>{trans.__('Servers')}</a>
      </nav>
      <span className="pai-WebBar-person">
        {facts.user} <a href={`${facts.hub}logout`}>{trans.__('Log out')}</a>
      </span>
    </header>
  );
}
