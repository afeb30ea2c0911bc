// The head of a job's page until the scheduler has answered: what the list of jobs knows of it.

import * as React from 'react';

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { stateLabel } from '../../console/data/words';
import { LocalTime } from '../../console/kit/time';
import { JobModel } from './model';

interface IGlanceProps {
  model: JobModel;
  /** `undefined`: the list does not have it. */
  job: IJob | undefined;
  isOwnServer: boolean;
  trans: ITranslation;
  language: string;
}

/** Shows how a job is as soon as its page is there; what one can do with it comes with the answer. */
export function JobGlance({ model, job, isOwnServer, trans, language }: IGlanceProps): React.ReactElement {
  const { name } = model.name;
  if (!job) {
    return <h2>{name}</h2>;
  }
  return (
    <section className="pai-Job-head" aria-label={trans.__('State of “%1”', name)}>
      <div className="pai-Page-header">
        <h2>{name}</h2>
      </div>
      <p className="pai-Job-facts">
        <span className="pai-State" data-state={job.state}>
          {stateLabel(job, trans)}
        </span>{' '}
        {isOwnServer && <span>{trans.__('this notebook server')}</span>}
        {job.completedTime !== null && (
          <span>
            {trans.__('since')} <LocalTime time={new Date(job.completedTime)} language={language} form="seconds" />
          </span>
        )}
        <span>{trans.__('Virtual cluster %1', job.virtualCluster)}</span>
        <span>{trans.__('Priority: %1', job.priority)}</span>
        {job.queuePlace !== null && <span>{trans.__('Place %1 in the queue', job.queuePlace)}</span>}
      </p>
    </section>
  );
}
