// The states of jobs and of machines in words, when something that waits starts, and how all of a person's jobs are.

import { ITranslation } from '../host';
import { Shape } from '../kit/status';
import { localText } from '../kit/time';
import { IJob, INode, JobState } from './client';
import { count, IJobsModel, waiting } from './jobs';

/**
 * Return how a job is, in words: its state, and what it is doing exactly where the state does not say that.
 *
 * @param neverFits - whether it waits for what is not there
 */
export function stateLabel(job: Pick<IJob, 'state' | 'subState'>, trans: ITranslation, neverFits = false): string {
  if (neverFits) {
    return trans.__('Cannot start');
  }
  const doing = subStateLabel(job.subState, trans);
  const state = stateWord(job.state, trans);
  return doing ? trans.__('%1: %2', state, doing) : state;
}

/** Return by which shape a job or a task is told from others before its words are read. */
export function shapeOf({ state, subState }: Pick<IJob, 'state' | 'subState'>, neverFits = false): Shape {
  switch (state) {
    case 'WAITING':
      return neverFits
        ? 'never'
        : subState === 'STARTING'
          ? 'starting'
          : subState === 'RETRY_WAIT'
            ? 'again'
            : 'waiting';
    case 'RUNNING':
      return subState === 'DEBUG_HELD' ? 'failed' : 'running';
    case 'SUCCEEDED':
      return 'succeeded';
    case 'FAILED':
      return 'failed';
    case 'STOPPED':
      return 'stopped';
  }
}

/** Return a state in a word. */
export function stateWord(state: JobState, trans: ITranslation): string {
  switch (state) {
    case 'WAITING':
      return trans.__('Waiting');
    case 'RUNNING':
      return trans.__('Running');
    case 'SUCCEEDED':
      return trans.__('Succeeded');
    case 'FAILED':
      return trans.__('Failed');
    case 'STOPPED':
      return trans.__('Stopped');
  }
}

function subStateLabel(subState: string, trans: ITranslation): string {
  switch (subState) {
    case 'DEPENDENCY_WAIT':
      return trans.__('for other jobs');
    case 'STARTING':
      return trans.__('starting');
    case 'RETRY_WAIT':
      return trans.__('to be tried again');
    case 'ENDING':
      return trans.__('ending');
    case 'DEBUG_HELD':
      return trans.__('failed, container kept for debugging');
    default:
      return '';
  }
}

/** Return by which shape a machine is told from others. */
export function machineShape(node: Pick<INode, 'state' | 'closed'>): Shape {
  const state = shownState(node);
  return state === 'READY' ? 'succeeded' : state === 'LOST' ? 'failed' : 'stopped';
}

/** Return the state of a machine: that it is closed counts where it could take jobs otherwise. */
export function shownState(node: Pick<INode, 'state' | 'closed'>): string {
  return node.closed && node.state === 'READY' ? 'CLOSED' : node.state;
}

/** Return how a machine is, in words; of one that is closed, by whom and why; and what maintenance is planned. */
export function machineLabel(
  node: Pick<INode, 'state' | 'closed' | 'maintenance'>,
  trans: ITranslation,
  language: string
): string {
  const from = node.closed?.since ?? 0;
  const planned = (node.maintenance ?? []).filter(one => one.begin > from);
  return planned.reduce(
    (label, { begin, end, reason }) => {
      const [first, last] = [begin, end].map(time => localText(new Date(time), language, 'minutes'));
      return trans.__('%1; maintenance from %2 to %3: %4', label, first, last, reason);
    },
    stateLabelOf(node, trans, language)
  );
}

function stateLabelOf(node: Pick<INode, 'state' | 'closed'>, trans: ITranslation, language: string): string {
  if (node.closed?.until && node.state === 'READY') {
    const until = localText(new Date(node.closed.until), language, 'minutes');
    return trans.__('in maintenance until %1: %2', until, node.closed.reason);
  }
  if (node.closed && node.state === 'READY') {
    return trans.__('closed by %1: %2', node.closed.by, node.closed.reason);
  }
  switch (node.state) {
    case 'READY':
      return trans.__('ready');
    case 'PAUSED':
      return trans.__('paused: nothing new starts there');
    case 'DRAINED':
      return trans.__('drained: nothing new starts there');
    case 'FULL':
      return trans.__('its disk is almost full: nothing new starts there');
    case 'LOST':
      return trans.__('lost: it does not answer');
  }
}

// When something that waits starts, as the scheduler estimates it, in words.

/** Say when it starts, rounded up; empty where that is not known. */
export function startsIn(seconds: number | null, trans: ITranslation): string {
  if (seconds === null) {
    return '';
  }
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  if (minutes <= 120) {
    return trans._n('It starts in about %1 minute.', 'It starts in about %1 minutes.', minutes);
  }
  const hours = Math.ceil(minutes / 60);
  return hours <= 48
    ? trans._n('It starts in about %1 hour.', 'It starts in about %1 hours.', hours)
    : trans._n('It starts in about %1 day.', 'It starts in about %1 days.', Math.ceil(hours / 24));
}

// How the person's jobs are, all together.

/** Return in a few words how the person's jobs are; the notebook server they sit at is none of them. */
export function summary(model: IJobsModel, trans: ITranslation): string {
  if (model.error) {
    return trans.__('PAI: not available');
  }
  if (model.jobs === null) {
    return trans.__('PAI: …');
  }
  const parts = [];
  const others = model.jobs.filter(job => !model.isOwnServer(job));
  const running = count(others, 'RUNNING');
  const waits = count(others, 'WAITING');
  if (running) {
    parts.push(trans.__('%1 running', running));
  }
  if (waits) {
    parts.push(trans.__('%1 waiting', waits));
  }
  return parts.length ? trans.__('PAI: %1', parts.join(' · ')) : trans.__('PAI: no active jobs');
}

/** Return the tooltip of that: why nothing is known, or why the first job waits. */
export function explanation(model: IJobsModel, trans: ITranslation): string {
  if (model.error) {
    return model.error;
  }
  const first = waiting(model.jobs ?? [])[0];
  if (!first) {
    return trans.__('Show my PAI jobs');
  }
  const reason = model.reason(first);
  return reason ? trans.__('“%1”: %2', first.name, reason) : trans.__('“%1” is waiting', first.name);
}
