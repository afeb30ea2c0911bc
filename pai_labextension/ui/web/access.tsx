// The pages of the ways into a task: a terminal, and “Connect”.

import 'style/access.css';

import * as React from 'react';

import { Connect } from '../console/access/connect';
import { RecentTasks, TaskFinder } from '../console/access/tasks';
import { TaskTerminal } from '../console/access/terminal';
import { ITask } from '../console/data/client';
import { messageOf } from '../console/data/errors';
import { Place, useHost } from '../console/host';
import { TextButton } from '../console/kit/button';
import { PageError } from '../console/kit/status';
import type { IPageProps } from './pages';

type AccessPlace = Extract<Place, { page: 'terminal' | 'connect' }>;

/** What was chosen last, in this browser. */
const KEPT = {
  fetch: async (key: string): Promise<unknown> => JSON.parse(localStorage.getItem(key) ?? 'null'),
  save: async (key: string, value: string[]): Promise<void> => localStorage.setItem(key, JSON.stringify(value))
};

/** Shows a terminal in a task. */
export function TerminalPlace(props: IPageProps<AccessPlace>): React.ReactElement {
  const { trans, places } = useHost();
  const { job } = props.place;
  return (
    <OfTask {...props} title={trans.__('Open a terminal')} accept={trans.__('Open')}>
      {task => (
        <>
          <div className="pai-Shell-head">
            <a href={places.href({ page: 'job', job })!}>{job.name}</a>
            <span>{task.task}</span>
            <TextButton small onClick={() => places.open({ page: 'connect', job, task: task.task })}>
              {trans.__('Connect')}
            </TextButton>
          </div>
          <TaskTerminal task={task} />
        </>
      )}
    </OfTask>
  );
}

/** Shows how programs reach a task. */
export function ConnectPlace(props: IPageProps<AccessPlace>): React.ReactElement {
  const { trans } = useHost();
  return (
    <OfTask {...props} title={trans.__('Connect to a PAI task')} accept={trans.__('Connect')}>
      {task => <Connect task={task} />}
    </OfTask>
  );
}

interface IOfTaskProps extends IPageProps<AccessPlace> {
  title: string;
  accept: string;
  children: (task: ITask) => React.ReactElement;
}

/** Shows something of the task in the address; where that names none, of the only one or the one that is chosen. */
function OfTask({ place, models, title, accept, children }: IOfTaskProps): React.ReactElement {
  const host = useHost();
  const { trans, places } = host;
  const { username: user, name: job } = place.job;
  const task = React.useMemo<ITask | null>(
    () => (place.task === undefined ? null : { user, job, task: place.task }),
    [user, job, place.task]
  );
  const [error, setError] = React.useState('');
  const { page } = place;
  const find = React.useCallback(async () => {
    const ofJob = { username: user, name: job };
    setError('');
    try {
      const finder = new TaskFinder(host, models.jobs, new RecentTasks(KEPT));
      const found = await finder.find({ user, job }, title, accept);
      // the address is all that another tab needs
      places.open(found ? { page, job: ofJob, task: found.task } : { page: 'job', job: ofJob }, true);
    } catch (error) {
      setError(messageOf(error));
    }
  }, [host, models, places, page, user, job, title, accept]);
  const begun = React.useRef(false);
  React.useEffect(() => {
    if (!begun.current && task === null) {
      begun.current = true;
      void find();
    }
  });
  if (task !== null) {
    return children(task);
  }
  return error === '' ? (
    <p role="status">{trans.__('One moment …')}</p>
  ) : (
    <div className="pai-Page">
      <PageError text={error} />
      <div className="pai-Page-header">
        <TextButton accept onClick={() => void find()}>
          {trans.__('Try again')}
        </TextButton>
        <a href={places.href({ page: 'job', job: place.job })!}>{job}</a>
      </div>
    </div>
  );
}
