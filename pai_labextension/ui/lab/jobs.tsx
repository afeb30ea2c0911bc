// The side bar "PAI" (my jobs, the queue, the cluster), the command that shows it, and the item of the status bar.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStatusBar } from '@jupyterlab/statusbar';
import * as React from 'react';

import { ClusterPage } from '../console/cluster/page';
import { ClusterModel } from '../console/data/cluster';
import { IJobsModel } from '../console/data/jobs';
import { useSignal } from '../console/data/store';
import { explanation, summary } from '../console/data/words';
import { useHost } from '../console/host';
import { JobsPage } from '../console/jobs/page';
import { QueueModel, QueuePage } from '../console/jobs/queue';
import { SchedulesModel } from '../console/jobs/schedules';
import { IconButton } from '../console/kit/button';
import { ILabHost, JobsToken } from './host';
import { paiIcon } from './icon';
import { Mount } from './mount';

const ID = 'pai-sidebar';
const SHOW = 'pai:show-jobs';

/** What the side bar shows. */
const PAGES = ['jobs', 'queue', 'cluster'] as const;
type Page = (typeof PAGES)[number];

export const sidebarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'pai-labextension:jobs',
  description: 'The side bar with my jobs, the queue and the cluster; counts the jobs in the status bar.',
  autoStart: true,
  requires: [ILabHost, JobsToken],
  optional: [ICommandPalette, IStatusBar, ILayoutRestorer],
  activate: (
    { commands, shell }: JupyterFrontEnd,
    host: ILabHost,
    model: IJobsModel,
    palette: ICommandPalette | null,
    statusBar: IStatusBar | null,
    restorer: ILayoutRestorer | null
  ) => {
    const { client, trans } = host;
    const models: IModels = {
      model,
      queue: new QueueModel(client),
      cluster: new ClusterModel(client),
      schedules: new SchedulesModel(client)
    };
    let page: Page = 'jobs';
    const turnTo = (to: Page) => {
      page = to;
      sidebar.update();
    };
    const sidebar = new Mount(host, () => <Sidebar {...models} page={page} onPage={turnTo} />);
    sidebar.id = ID;
    sidebar.addClass('pai-Sidebar');
    sidebar.node.setAttribute('role', 'region');
    sidebar.node.setAttribute('aria-label', trans.__('PAI'));
    sidebar.title.icon = paiIcon;
    sidebar.title.caption = trans.__('PAI: jobs, queue and cluster');
    shell.add(sidebar, 'left', { rank: 105, type: 'PAI' });
    restorer?.add(sidebar, ID);
    commands.addCommand(SHOW, {
      label: trans.__('Show PAI jobs'),
      caption: trans.__('List my jobs on the GPU cluster'),
      icon: args => (args.isPalette ? undefined : paiIcon),
      describedBy: { args: { type: 'object', properties: { page: { type: 'string', enum: [...PAGES] } } } },
      execute: args => {
        turnTo(PAGES.find(each => each === args.page) ?? 'jobs');
        shell.activateById(ID);
      }
    });
    palette?.addItem({ command: SHOW, category: trans.__('PAI'), args: { isPalette: true } });
    const item = new Mount(host, () => <StatusItem model={model} />);
    item.addClass('pai-StatusItem');
    statusBar?.registerStatusItem('pai-labextension:jobs', {
      item,
      align: 'left',
      rank: 100,
      // in a narrow window JupyterLab hides items of the usual priority
      priority: 1
    });
  }
};

/** What is known, and stays known when another page is shown. */
interface IModels {
  readonly model: IJobsModel;
  readonly queue: QueueModel;
  readonly cluster: ClusterModel;
  readonly schedules: SchedulesModel;
}

/** The side bar, one of its pages in view. */
function Sidebar(props: IModels & { page: Page; onPage: (page: Page) => void }): React.ReactElement {
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

/** How many of my jobs run and wait, and why the first one waits; opens the list. */
function StatusItem({ model }: { model: IJobsModel }): React.ReactElement {
  const { trans, places } = useHost();
  useSignal(model.changed);
  return (
    <button
      type="button"
      className={model.error ? 'pai-StatusItem-button pai-mod-unavailable' : 'pai-StatusItem-button'}
      title={explanation(model, trans)}
      onClick={() => places.open({ page: 'jobs' })}
    >
      <paiIcon.react tag="span" width="14px" height="14px" />
      <span>{summary(model, trans)}</span>
    </button>
  );
}
