// The page of one job, whose tab stands in the address.

import * as React from 'react';

import { JobModel } from '../console/data/job';
import { Place, useHost } from '../console/host';
import { LogModel } from '../console/job/log/model';
import { JobPage, Tab, TABS } from '../console/job/page';
import type { IPageProps } from './pages';

/** Shows a job; another one is another element, by its key. */
export default function JobPlace(props: IPageProps<Extract<Place, { page: 'job' }>>): React.ReactElement {
  const { job, tab } = props.place;
  const { jobs } = props.models;
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
