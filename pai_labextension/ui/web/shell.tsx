// The frame of all pages: the bar with the ways to them, and what is said of a login that has ended.

import * as React from 'react';

import { useSignal } from '../console/data/store';
import { HostProvider, IHost, Place } from '../console/host';
import { IPageFacts, WebTransport } from './host';
import { keyOf, PageOf, titleOf, useModels } from './pages';
import { Router } from './router';

interface IShellProps {
  host: IHost;
  transport: WebTransport;
  router: Router;
  facts: IPageFacts;
}

export function Shell({ host, transport, router, facts }: IShellProps): React.ReactElement {
  useSignal(router.changed);
  const [loggedOut, setLoggedOut] = React.useState(false);
  React.useEffect(() => transport.loggedOut.connect(setLoggedOut), [transport]);
  const models = useModels(host);
  const { trans } = host;
  const { place } = router;
  const title = titleOf(place, trans);
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
        <React.Suspense fallback={<p role="status">{trans.__('One moment …')}</p>}>
          <PageOf key={keyOf(place)} {...{ place, models }} />
        </React.Suspense>
      </main>
    </HostProvider>
  );
}

/** The ways to the pages, to those of the Hub, and out. */
function Bar(props: { host: IHost; router: Router; facts: IPageFacts; place: Place }): React.ReactElement {
  const { host, router, facts, place } = props;
  const { trans } = host;
  const shown: Place[] = [
    { page: 'jobs' },
    { page: 'queue' },
    { page: 'cluster' },
    { page: 'storage', path: '' },
    { page: 'schedules' }
  ];
  const ends: Place[] = facts.administrator ? [{ page: 'admin' }] : [];
  const here = 'job' in place ? 'jobs' : place.page;
  const way = (to: Place) => ({
    href: router.href(to)!,
    'aria-current': to.page === here ? ('page' as const) : undefined,
    onClick: (event: React.MouseEvent) => {
      // (a new tab is the browser's own business)
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        router.open(to);
      }
    }
  });
  const link = (to: Place) => (
    <a key={to.page} {...way(to)}>
      {titleOf(to, trans)}
    </a>
  );
  return (
    <header className="pai-WebBar">
      <a className="pai-WebBar-mark" href={facts.prefix}>
        PAI
      </a>
      <nav aria-label={trans.__('Pages')}>
        {shown.map(link)}
        <a href={`${facts.hub}home`}>{trans.__('Servers')}</a>
        {ends.map(link)}
      </nav>
      <a className="pai-WebBar-new" {...way({ page: 'submit' })}>
        {titleOf({ page: 'submit' }, trans)}
      </a>
      <span className="pai-WebBar-person">
        {facts.user} <a href={`${facts.hub}logout`}>{trans.__('Log out')}</a>
      </span>
    </header>
  );
}
