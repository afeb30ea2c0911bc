// The ports of running jobs: what is known of them, and a link for each label of each running task.

import * as React from 'react';

import { Client } from '../data/client';
import { IJobsModel, isOpen, key } from '../data/jobs';
import { fewAtOnce, IDisposable, Poll, Signal } from '../data/store';
import { ITranslation, useHost } from '../host';
import { Icon } from '../kit/icon';
import { IRunningTask, keyOf, tasksOfJob } from './tasks';

/** ms between two questions, and at most after failed ones. */
const INTERVAL = 15_000;
const MAX_INTERVAL = 120_000;
/** Of how many running jobs the tasks are asked for, each a request, and how many of these at once. */
const JOBS = 20;
const AT_ONCE = 2;

/** Knows the ports of the running jobs. */
export class JobPorts implements IDisposable {
  constructor(
    private readonly jobs: IJobsModel,
    private readonly client: Client
  ) {
    this.poll = new Poll(() => this.ask(), { interval: INTERVAL, max: MAX_INTERVAL });
    this.deaf = jobs.changed.connect(() => this.compare());
  }

  readonly changed = new Signal();

  get isDisposed(): boolean {
    return this.poll.isDisposed;
  }

  /** List the running tasks of a job that have ports, as far as they are known. */
  of(job: Parameters<typeof key>[0]): readonly IRunningTask[] {
    return this.tasks.get(key(job)) ?? [];
  }

  /** Return the link to a port. */
  url(task: IRunningTask, label: string): string {
    return this.client.portUrl(task, label);
  }

  /** Note that the list came into view, or went. */
  setShown(shown: boolean): void {
    this.shown = shown;
    if (shown) {
      this.poll.start();
    } else {
      this.poll.stop();
    }
  }

  dispose(): void {
    this.deaf();
    this.poll.dispose();
    this.changed.clear();
  }

  private get running() {
    return (this.jobs.jobs ?? []).filter(isOpen).slice(0, JOBS);
  }

  /** A job that has begun to run is asked about at once. */
  private compare(): void {
    if (this.shown && this.running.some(job => !this.tasks.has(key(job)))) {
      void this.poll.refresh();
    }
  }

  private async ask(): Promise<void> {
    const { running } = this;
    const found = new Map<string, readonly IRunningTask[]>();
    await fewAtOnce(running, AT_ONCE, async job => {
      // of a job that could not be asked about nothing is known: not asked again before its turn
      const tasks = await tasksOfJob(job, this.client).catch((): IRunningTask[] => []);
      found.set(
        key(job),
        tasks.filter(({ ports }) => ports.length > 0)
      );
    });
    this.tasks = found;
    if (!this.isDisposed) {
      this.changed.emit();
    }
  }

  private readonly poll: Poll;
  private readonly deaf: () => void;
  private tasks = new Map<string, readonly IRunningTask[]>();
  private shown = false;
}

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
