// The side bar "PAI": my jobs, the queue, the cluster; one of them in view.

import * as React from 'react';

import { OnSignal, Signal } from '../../console/data/store';
import { IconButton } from '../../console/kit/button';
import { ShownWidget } from '../shownWidget';
import { ClusterModel } from './cluster';
import { ClusterPage } from './clusterPage';
import { IJobsPageProps, JobsPage } from './jobsPage';
import { QueueModel } from './queue';
import { QueuePage } from './queuePage';

interface ISidebarProps extends IJobsPageProps {
  queue: QueueModel;
  cluster: ClusterModel;
  onNewJob: () => void;
}

/** What the side bar shows. */
export const PAGES = ['jobs', 'queue', 'cluster'] as const;
export type Page = (typeof PAGES)[number];

export class Sidebar extends ShownWidget {
  constructor(private readonly props: ISidebarProps) {
    super();
    this.addClass('pai-Sidebar');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', props.trans.__('PAI'));
    const { model, ports, schedules, queue, cluster } = props;
    for (const { changed } of [model, ports, schedules, queue, cluster]) {
      changed.connect(() => this.news.emit());
    }
  }

  /** Show one of its pages. */
  turnTo(page: Page): void {
    this.page = page;
    this.setShown(this.isVisible);
    this.news.emit();
  }

  protected render(): React.ReactElement {
    return (
      <OnSignal signal={this.news}>
        {() => <SidebarView {...this.props} page={this.page} onPage={page => this.turnTo(page)} />}
      </OnSignal>
    );
  }

  /** Only what is in view is asked for. */
  protected setShown(shown: boolean): void {
    const { model, ports, schedules, queue, cluster } = this.props;
    model.setListed(shown && this.page === 'jobs');
    ports.setShown(shown && this.page === 'jobs');
    schedules.setShown(shown && this.page === 'jobs');
    queue.setShown(shown && this.page === 'queue');
    cluster.setShown(shown && this.page === 'cluster');
  }

  private readonly news = new Signal();
  private page: Page = 'jobs';
}

function SidebarView(props: ISidebarProps & { page: Page; onPage: (page: Page) => void }): React.ReactElement {
  const { model, schedules, queue, cluster, trans, language, page, onPage } = props;
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
        <IconButton icon="add" label={trans.__('New PAI job')} onClick={props.onNewJob} />
        <IconButton icon="refresh" label={trans.__('Refresh')} disabled={busy} onClick={() => void refresh()} />
      </div>
      {page === 'jobs' && <JobsPage {...props} />}
      {page === 'queue' && <QueuePage queue={queue} trans={trans} />}
      {page === 'cluster' && <ClusterPage cluster={cluster} trans={trans} language={language} />}
    </>
  );
}
