// The page of a job as a tab of the main area.

import { MainAreaWidget } from '@jupyterlab/apputils';
import * as React from 'react';

import { IJobName } from '../console/data/client';
import { JobModel } from '../console/data/job';
import { IJobsModel, key } from '../console/data/jobs';
import { LogModel } from '../console/job/log/model';
import { JobPage, Tab } from '../console/job/page';
import { ILabHost } from './host';
import { paiIcon } from './icon';
import { Mount } from './mount';

/** A job's page as a tab of the main area. */
export class JobTab extends MainAreaWidget<Mount> {
  readonly model: JobModel;

  constructor(host: ILabHost, jobs: IJobsModel, job: IJobName) {
    const model = new JobModel(host.client, job);
    const log = new LogModel(model);
    const Page = () => {
      const [tab, onTab] = React.useState<Tab>('logs');
      return <JobPage {...{ model, log, jobs, tab, onTab }} onDeleted={() => this.dispose()} />;
    };
    super({ content: new Mount(host, () => <Page />) });
    this.model = model;
    this.disposed.connect(() => {
      log.dispose();
      model.dispose();
    });
    this.id = `pai-job-${key(job)}`;
    this.title.label = job.name;
    this.title.caption = host.trans.__('PAI job “%1” of %2', job.name, job.username);
    this.title.icon = paiIcon;
    this.title.closable = true;
    this.toolbar.hide(); // its buttons are beside its heading
  }
}
