// The side bar "PAI" (my jobs, the queue, the cluster), the command that shows it, and the item of the status bar.

import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IStatusBar } from '@jupyterlab/statusbar';
import * as React from 'react';

import { IJobsModel } from '../console/data/jobs';
import { useSignal } from '../console/data/store';
import { explanation, summary } from '../console/data/words';
import { useHost } from '../console/host';
import { ILabHost, JobsToken } from './host';
import { paiIcon } from './icon';
import { late, Mount } from './mount';
import type { Page } from './sidebar';

const ID = 'pai-sidebar';
const SHOW = 'pai:show-jobs';

/** What the side bar shows. */
const PAGES: readonly Page[] = ['jobs', 'queue', 'cluster'];

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
    const Sidebar = late(async () => (await import('./sidebar')).sidebarOf(client, model));
    let page: Page = 'jobs';
    const turnTo = (to: Page) => {
      page = to;
      sidebar.update();
    };
    // (JupyterLab draws what is attached, in view or not: nothing is loaded before somebody looks)
    let seen = false;
    const sidebar: Mount = new Mount(host, () =>
      (seen ||= sidebar.isVisible) ? <Sidebar page={page} onPage={turnTo} /> : <></>
    );
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
