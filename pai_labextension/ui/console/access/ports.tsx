// The ports of a job: a link for each label of each running task.

import * as React from 'react';

import { ITranslation, useHost } from '../host';
import { Icon } from '../kit/icon';
import { IRunningTask, keyOf } from './tasks';

// A link to what listens on a port.

/** A link that opens in a tab of its own. */
export function PortLink(props: { label: string; url: string; title: string }): React.ReactElement {
  return (
    <a className="pai-PortLink" href={props.url} target="_blank" rel="noopener" title={props.title}>
      {props.label}
      <Icon sign="open" />
    </a>
  );
}

// The ports of a job: a link for each label of each running task, of the first few.

/** Tasks whose links stand in the list; those of the others are in “Connect”. */
const TASKS = 3;

/** Shows nothing for a job without ports. */
export function JobPortsView(props: {
  name: string;
  tasks: readonly IRunningTask[];
  /** Return the address of a task's port. */
  urlOf: (task: IRunningTask, label: string) => string;
  trans: ITranslation;
}): React.ReactElement | null {
  const { name, tasks, urlOf, trans } = props;
  const { facts } = useHost();
  if (tasks.length === 0 || !facts.hasPorts) {
    return null;
  }
  return (
    <ul className="pai-Jobs-ports" aria-label={trans.__('Ports of “%1”', name)}>
      {tasks.slice(0, TASKS).map(task => (
        <li key={keyOf(task)}>
          {task.task}:{' '}
          {task.ports.map(label => (
            <PortLink
              key={label}
              label={label}
              url={urlOf(task, label)}
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
