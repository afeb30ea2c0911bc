// Stopping and deleting jobs, one or many: it is asked once, with how many and which.

import { IJobName } from '../data/client';
import { IJobsModel, IJobState, IRefusal, isActive, isEnding } from '../data/jobs';
import { IHost, ITranslation } from '../host';
import { confirm, showError } from '../kit/dialog';

/** What ends a job: `kill` gives tasks that are being stopped no more time to end by themselves. */
export type Ending = 'stop' | 'kill' | 'delete';

/** Names that a question lists; of more it says how many. */
const NAMED = 10;

/** Return those of some jobs with which this can be done: what has ended is not stopped. */
export function endable<Job extends IJobState>(jobs: readonly Job[], ending: Ending): Job[] {
  return jobs.filter(job => ending === 'delete' || (ending === 'kill' ? isEnding(job) : isActive(job)));
}

/** Return the title of a question. */
export function title(jobs: readonly IJobState[], ending: Ending, trans: ITranslation): string {
  const [first] = jobs;
  if (ending === 'kill') {
    return trans.__('Kill “%1” now?', first!.name);
  }
  if (jobs.length === 1) {
    return ending === 'stop' ? trans.__('Stop “%1”?', first!.name) : trans.__('Delete “%1”?', first!.name);
  }
  return ending === 'stop'
    ? trans._n('Stop %1 job?', 'Stop %1 jobs?', jobs.length)
    : trans._n('Delete %1 job?', 'Delete %1 jobs?', jobs.length);
}

/** Return what the button says that does it. */
export function button(jobs: readonly IJobState[], ending: Ending, trans: ITranslation): string {
  if (ending === 'kill') {
    return trans.__('Kill now');
  }
  if (jobs.length === 1) {
    return ending === 'stop' ? trans.__('Stop the job') : trans.__('Delete the job');
  }
  return ending === 'stop'
    ? trans._n('Stop %1 job', 'Stop %1 jobs', jobs.length)
    : trans._n('Delete %1 job', 'Delete %1 jobs', jobs.length);
}

/** Return what a question says beneath its title; its lines are paragraphs. */
export function warning(
  jobs: readonly IJobState[],
  ending: Ending,
  model: Pick<IJobsModel, 'isOwnServer'>,
  trans: ITranslation
): string {
  const lines = jobs.length > 1 ? [named(jobs, trans)] : [];
  const own = jobs.find(job => model.isOwnServer(job));
  if (own) {
    lines.push(
      jobs.length === 1
        ? trans.__('This is the notebook server you are using. It ends at once, with all its kernels.')
        : trans.__('“%1” is the notebook server you are using. It ends at once, with all its kernels.', own.name)
    );
  }
  if (ending === 'delete') {
    lines.push(
      trans.__(
        'What runs is stopped first. The logs are deleted, too; results in the storage stay. This cannot be undone.'
      )
    );
  } else if (ending === 'kill') {
    lines.push(trans.__('What its tasks have not saved yet is lost. Logs are kept. This cannot be undone.'));
  } else if (!own || jobs.length > 1) {
    lines.push(
      trans._n(
        'Its tasks have a short time to save their work, then its GPUs become free. Logs are kept. This cannot be undone.',
        'Their tasks have a short time to save their work, then their GPUs become free. Logs are kept. This cannot be undone.',
        jobs.length
      )
    );
  }
  return lines.join('\n\n');
}

function named(jobs: readonly IJobState[], trans: ITranslation): string {
  const names = jobs.slice(0, NAMED).map(job => job.name);
  const others = jobs.length - names.length;
  return others > 0 ? trans.__('%1 and %2 more', names.join(', '), others) : names.join(', ');
}

/** Return how many were refused, or which one. */
export function refusal(refused: readonly IRefusal[], asked: number, ending: Ending, trans: ITranslation): string {
  if (asked === 1) {
    const { name } = refused[0]!.job;
    return ending !== 'delete' ? trans.__('“%1” was not stopped', name) : trans.__('“%1” was not deleted', name);
  }
  return ending !== 'delete'
    ? trans.__('%1 of %2 jobs were not stopped', refused.length, asked)
    : trans.__('%1 of %2 jobs were not deleted', refused.length, asked);
}

/** Return why, each reason once with the jobs that have it. */
export function reasons(refused: readonly IRefusal[], trans: ITranslation): string {
  if (refused.length === 1) {
    return refused[0]!.message;
  }
  const jobs = new Map<string, IJobState[]>();
  for (const { job, message } of refused) {
    jobs.set(message, [...(jobs.get(message) ?? []), job]);
  }
  return [...jobs].map(([message, of]) => trans.__('%1: %2', named(of, trans), message)).join('\n');
}

/** Ask whether that is meant, and do it; say which jobs were refused. Return these; `null`: it was not meant. */
export async function end(
  jobs: readonly IJobState[],
  ending: Ending,
  model: IJobsModel,
  host: IHost
): Promise<IRefusal[] | null> {
  const { trans } = host;
  const meant = endable(jobs, ending);
  if (meant.length === 0) {
    return null;
  }
  const isMeant = await confirm(host, {
    title: title(meant, ending, trans),
    text: warning(meant, ending, model, trans),
    accept: button(meant, ending, trans),
    cancel: trans._n('Keep it', 'Keep them', meant.length),
    warn: true
  });
  if (!isMeant) {
    return null;
  }
  const refused = await (ending === 'delete' ? model.delete(meant) : model.stop(meant, ending === 'kill'));
  if (refused.length > 0) {
    await showError(host, refusal(refused, meant.length, ending, trans), reasons(refused, trans));
  }
  return refused;
}

/** Submit the same job under a new name, and show that one; where it is refused, that is said. */
export async function runAgain(job: IJobName, model: Pick<IJobsModel, 'refresh'>, host: IHost): Promise<void> {
  try {
    const other = await host.client.runAgain(job);
    void model.refresh();
    host.places.open({ page: 'job', job: other });
  } catch (error) {
    await showError(host, host.trans.__('“%1” was not submitted again', job.name), error);
  }
}
