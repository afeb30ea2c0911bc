// What the side bar shows: my jobs, the queue, the cluster.

import * as React from 'react';

import { ClusterPage } from '../console/cluster/page';
import { Client } from '../console/data/client';
import { ClusterModel } from '../console/data/cluster';
import { IJobsModel } from '../console/data/jobs';
import { useHost } from '../console/host';
import { JobsPage } from '../console/jobs/page';
import { QueueModel, QueuePage } from '../console/jobs/queue';
import { SchedulesModel } from '../console/jobs/schedules';
import { IconButton } from '../console/kit/button';

const PAGES = ['jobs', 'queue', 'cluster'] as const;
export type Page = (typeof PAGES)[number];

/** What is known, and stays known when another page is shown. */
interface IModels {
  readonly model: IJobsModel;
  readonly queue: QueueModel;
  readonly cluster: ClusterModel;
  readonly schedules: SchedulesModel;
}

/** Return the side bar, which keeps what is known while another page is shown, or none. */
export function sidebarOf(client: Client, model: IJobsModel): React.FunctionComponent<ISidebarProps> {
  const models: IModels = {
    model,
    queue: new QueueModel(client),
    cluster: new ClusterModel(client),
    schedules: new SchedulesModel(client)
  };
  return props => <Sidebar {...models} {...props} />;
}

interface ISidebarProps {
  page: Page;
  onPage: (page: Page) => void;
}

/** The side bar, one of its pages in view. */
function Sidebar(props: IModels & ISidebarProps): React.ReactElement {
  const { model, queue, cluster, schedules, page, onPage } = props;
  const { trans, places } = useHost();
  const [busy, setBusy] = React.useState(false);
  const labels: Record<Page, string> = {
    jobs: trans.__('My jobs'),
    queue: trans.__('Queue'),
    cluster: trans.__('Cluster')
  };
  const refresh = async () => {
    setBusy(true);
    const shown = { jobs: [model, schedules], queue: [queue], cluster: [cluster] }[page];
    await Promise.all(shown.map(each => each.refresh()));
    setBusy(false);
  };
  return (
    <>
      <div className="pai-Sidebar-header">
        <div role="group" aria-label={trans.__('What is shown')} className="pai-Sidebar-pages">
          {PAGES.map(each => (
            <button
              key={each}
              type="button"
              aria-pressed={each === page}
              className="pai-Sidebar-page"
              onClick={() => onPage(each)}
            >
              {labels[each]}
            </button>
          ))}
        </div>
        <IconButton icon="add" label={trans.__('New PAI job')} onClick={() => places.open({ page: 'submit' })} />
        <IconButton icon="refresh" label={trans.__('Refresh')} disabled={busy} onClick={() => void refresh()} />
      </div>
      {page === 'jobs' && <JobsPage {...{ model, schedules }} />}
      {page === 'queue' && <QueuePage queue={queue} />}
      {page === 'cluster' && <ClusterPage cluster={cluster} />}
    </>
  );
}
