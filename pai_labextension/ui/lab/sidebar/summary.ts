// What the status bar says: how the person's jobs are, in a few words, and a sentence more.

import { ITranslation } from '../../console/host';
import { count, IJobsModel, waiting } from '../../console/data/jobs';

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
