// What can be done with a job, or with those that are chosen, as entries of a menu.

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { Ending } from '../../console/jobs/ending';
import { isActive, isEnding, isOpen } from '../../console/data/jobs';
import { IEntry } from '../../console/kit/menu';

/** What is done where an entry is chosen. */
export interface IJobActions {
  /** Show all of a job. */
  onOpen(job: IJob): void;
  /** Open a terminal in one of its tasks. */
  onTerminal(job: IJob): void;
  /** Show how to reach one of its tasks. */
  onConnect(job: IJob): void;
  /** Submit the same job under a new name. */
  onRunAgain(job: IJob): void;
  /** Open the job editor with a copy of it. */
  onClone(job: IJob): void;
  /** Stop or delete them, once that was asked. */
  onEnd(jobs: readonly IJob[], ending: Ending): void;
}

/** Return what can be done with a job; nobody wants another notebook server as a job. */
export function entriesOf(job: IJob, isOwnServer: boolean, actions: IJobActions, trans: ITranslation): IEntry[][] {
  const open: IEntry = { label: trans.__('Open'), icon: 'open', act: () => actions.onOpen(job) };
  const inside: IEntry[] = [
    { label: trans.__('Terminal'), icon: 'terminal', act: () => actions.onTerminal(job) },
    { label: trans.__('Connect'), icon: 'link', act: () => actions.onConnect(job) }
  ];
  const again: IEntry[] = [
    { label: trans.__('Run again'), icon: 'refresh', act: () => actions.onRunAgain(job) },
    { label: trans.__('Clone and edit'), icon: 'copy', act: () => actions.onClone(job) }
  ];
  const stop: IEntry = { label: trans.__('Stop …'), icon: 'stop', act: () => actions.onEnd([job], 'stop') };
  const kill: IEntry = { label: trans.__('Kill now …'), icon: 'stop', act: () => actions.onEnd([job], 'kill') };
  const remove: IEntry = { label: trans.__('Delete …'), icon: 'delete', act: () => actions.onEnd([job], 'delete') };
  return [
    [open, ...(isOpen(job) ? inside : [])],
    ...(isOwnServer ? [] : [again]),
    [...(isActive(job) ? [isEnding(job) ? kill : stop] : []), remove]
  ];
}

/** Return what can be done with several jobs at once. */
export function entriesOfMany(jobs: readonly IJob[], actions: IJobActions, trans: ITranslation): IEntry[][] {
  const active = jobs.filter(isActive);
  const stop: IEntry = {
    label: trans._n('Stop %1 job …', 'Stop %1 jobs …', active.length),
    icon: 'stop',
    act: () => actions.onEnd(active, 'stop')
  };
  const remove: IEntry = {
    label: trans._n('Delete %1 job …', 'Delete %1 jobs …', jobs.length),
    icon: 'delete',
    act: () => actions.onEnd(jobs, 'delete')
  };
  return [[...(active.length > 0 ? [stop] : []), remove]];
}
