// The page of one job, whose tab stands in the address.

import * as React from 'react';

import { Place, useHost } from '../console/host';
import { OpenJob, Tab, TABS } from '../console/job/page';
import type { IPageProps } from './pages';

/** Shows a job; another one is another element, by its key. */
export default function JobPlace(props: IPageProps<Extract<Place, { page: 'job' }>>): React.ReactElement {
  const { job, tab } = props.place;
  const { places } = useHost();
  return (
    <OpenJob
      job={job}
      jobs={props.models.jobs}
      tab={TABS.find(one => one === tab) ?? 'logs'}
      onTab={(tab: Tab) => places.open({ page: 'job', job, tab })}
      onDeleted={() => places.open({ page: 'jobs' })}
    />
  );
}
