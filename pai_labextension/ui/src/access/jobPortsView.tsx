// The ports of a job in the list of jobs: a link for each label of each running task.

import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { IJob } from '../api';
import { JobPorts } from './jobPorts';
import { PortLink } from './ports';
import { keyOf } from './tasks';

/** Tasks whose links stand in the list; those of the others are in “Connect”. */
const TASKS = 3;

/** Shows nothing for a job without ports. */
export function JobPortsView(props: {
  job: IJob;
  ports: JobPorts;
  trans: TranslationBundle;
}): React.ReactElement | null {
  const { job, ports, trans } = props;
  const tasks = ports.of(job);
  if (tasks.length === 0) {
    return null;
  }
  return (
    <ul className="pai-Jobs-ports" aria-label={trans.__('Ports of “%1”', job.name)}>
      {tasks.slice(0, TASKS).map(task => (
        <li key={keyOf(task)}>
          {task.task}:{' '}
          {task.ports.map(label => (
            <PortLink
              key={label}
              label={label}
              url={ports.url(task, label)}
              title={trans.__('Open “%1” of %2', label, task.task)}
            />
          ))}
        </li>
      ))}
      {tasks.length > TASKS && (
        <li>{trans._n('and %1 more task: see “Connect”', 'and %1 more tasks: see “Connect”', tasks.length - TASKS)}</li>
      )}
    </ul>
  );
}
