// The page of one job, whose tab stands in the address.

import * as React from 'react';

import { IJobName } from '../console/data/client';
import { JobModel } from '../console/data/job';
import { IJobsModel } from '../console/data/jobs';
import { useHost } from '../console/host';
import { LogModel } from '../console/job/log/model';
import { JobPage, Tab, TABS } from '../console/job/page';

/** Shows a job; another one is another element, by its key. */
export default function JobPlace(props: { job: IJobName; tab: string; jobs: IJobsModel }): React.ReactElement {
  const { job, tab, jobs } = props;
  const { client, places } = useHost();
  const [{ model, log }] = React.useState(() => {
    const model = new JobModel(client, job);
    return { model, log: new LogModel(model) };
  });
  React.useEffect(
    () => () => {
      log.dispose();
      model.dispose();
    },
    [model, log]
  );
  return (
    <JobPage
      {...{ model, log, jobs }}
      tab={TABS.find(one => one === tab) ?? 'logs'}
      onTab={(tab: Tab) => places.open({ page: 'job', job, tab })}
      onDeleted={() => places.open({ page: 'jobs' })}
    />
  );
}
