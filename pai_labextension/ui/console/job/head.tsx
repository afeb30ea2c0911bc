// The head of a job's page: its state and since when, why it waits or how it ended, and what one does with it.

import * as React from 'react';

import { JobPortsView } from '../access/ports';
import { runningTasks } from '../access/tasks';
import { endSentences, exitWords, IKnownJob, JobModel, since } from '../data/job';
import { IJobsModel, isEnding, isOpen } from '../data/jobs';
import { shapeOf, startsIn, stateLabel, stateWord } from '../data/words';
import { JobLink } from '../generated/types.gen';
import { useHost } from '../host';
import { end, Ending, runAgain } from '../jobs/ending';
import { TextButton } from '../kit/button';
import { State } from '../kit/status';
import { durationWords, LocalTime } from '../kit/time';

interface IHeadProps {
  model: JobModel;
  jobs: IJobsModel;
  /** The job is gone: the person has deleted it here. */
  onDeleted: () => void;
}

/**
 * Shows how a job is, whatever else its page shows; until the scheduler has answered what the list of jobs knows of it,
 * and what one can do with it comes with the answer.
 */
export function JobHead(props: IHeadProps): React.ReactElement {
  const { model, jobs } = props;
  const { trans, language } = useHost();
  const { known, name: job } = model;
  const status =
    known?.detail.jobStatus ?? jobs.jobs?.find(({ username, name }) => username === job.username && name === job.name);
  if (!status) {
    return <h2>{job.name}</h2>;
  }
  const neverFits = known?.detail.jobStatus.neverFits ?? false;
  return (
    <section className="pai-Job-head" aria-label={trans.__('State of “%1”', job.name)}>
      <div className="pai-Page-header">
        <h2>{job.name}</h2>
        {known && <Buttons {...props} known={known} />}
      </div>
      <p className="pai-Job-facts">
        <State shape={shapeOf(status, neverFits)}>{stateLabel(status, trans, neverFits)}</State>
        {jobs.isOwnServer(job) && <span>{trans.__('this notebook server')}</span>}
        {known ? (
          <Since known={known} />
        ) : (
          status.completedTime !== null && (
            <span>
              {trans.__('since')} <LocalTime time={new Date(status.completedTime)} language={language} form="seconds" />
            </span>
          )
        )}
        <span>{trans.__('Virtual cluster %1', status.virtualCluster)}</span>
        <span>{trans.__('Priority: %1', status.priority)}</span>
        {status.queuePlace !== null && <span>{trans.__('Place %1 in the queue', status.queuePlace)}</span>}
        {known && <Limits known={known} />}
      </p>
      {known && <Causes known={known} user={job.username} />}
    </section>
  );
}

function Since({ known }: { known: IKnownJob }): React.ReactElement {
  const { trans, language } = useHost();
  const { jobStatus } = known.detail;
  const time = since(jobStatus, known.attempts);
  const launched = jobStatus.appLaunchedTime;
  const end = jobStatus.completedTime;
  return (
    <>
      <span>
        {trans.__('since')} <LocalTime time={new Date(time)} language={language} form="seconds" />
      </span>
      {end === null && <span>({durationWords(known.time - time, trans)})</span>}
      {end !== null && launched !== null && <span>{trans.__('ran for %1', durationWords(end - launched, trans))}</span>}
    </>
  );
}

/** Which attempt it is, and when it ends whatever happens. */
function Limits({ known }: { known: IKnownJob }): React.ReactElement {
  const { trans, language } = useHost();
  const { latestEndTime, endingUntil } = known.detail.jobStatus;
  return (
    <>
      {known.attempts.length > 1 && <span>{trans.__('Attempt %1', known.attempts.length)}</span>}
      {latestEndTime !== null && (
        <span>
          {trans.__('Ends at the latest:')}{' '}
          <LocalTime time={new Date(latestEndTime)} language={language} form="minutes" />
        </span>
      )}
      {endingUntil !== null && (
        <span>
          {trans.__('Ends at the latest:')}{' '}
          <LocalTime time={new Date(endingUntil)} language={language} form="seconds" />
        </span>
      )}
    </>
  );
}

/** Why it waits, what it waits for, how it ended, and the ports of what runs. */
function Causes({ known, user }: { known: IKnownJob; user: string }): React.ReactElement {
  const { trans, client } = useHost();
  const { detail } = known;
  const status = detail.jobStatus;
  const tasks = isOpen(status) ? runningTasks({ username: user, name: detail.name }, detail) : [];
  return (
    <>
      {(status.waitingReason || status.startsWithin !== null) && (
        <p className="pai-Job-reason" role="status">
          {status.waitingReason} {startsIn(status.startsWithin, trans)}
        </p>
      )}
      <Links
        title={trans.__('Starts after:')}
        links={status.dependencies}
        count={status.dependencies.length}
        user={user}
      />
      <Links
        title={trans.__('Jobs that start after it:')}
        links={status.dependents}
        count={status.dependentCount}
        user={user}
      />
      <End known={known} />
      <JobPortsView
        name={detail.name}
        tasks={tasks.filter(({ ports }) => ports.length > 0)}
        urlOf={(task, label) => client.portUrl(task, label)}
        trans={trans}
      />
    </>
  );
}

/** Jobs that the job waits for, or that wait for it: each leads to its page, unless it is deleted. */
function Links(props: {
  title: string;
  links: readonly JobLink[];
  /** How many there are, of which the first are in `links`. */
  count: number;
  user: string;
}): React.ReactElement | null {
  const { title, links, count, user } = props;
  const { trans, places } = useHost();
  const ends = {
    succeeded: trans.__('on success'),
    ended: trans.__('however it ends'),
    failed: trans.__('on failure')
  };
  if (links.length === 0) {
    return null;
  }
  return (
    <p className="pai-Job-links">
      <span>{title}</span>
      {links.map(({ job: name, on, state }, index) => (
        <span key={index}>
          {state === null ? (
            name
          ) : (
            <button
              type="button"
              className="pai-LinkButton"
              onClick={() => places.open({ page: 'job', job: { name, username: user } })}
            >
              {name}
            </button>
          )}{' '}
          ({ends[on]}): {state === null ? trans.__('deleted') : stateWord(state, trans)}
        </span>
      ))}
      {count > links.length && <span>{trans.__('and %1 more', count - links.length)}</span>}
    </p>
  );
}

function End({ known }: { known: IKnownJob }): React.ReactElement | null {
  const { trans } = useHost();
  const { jobStatus } = known.detail;
  const code = exitWords(jobStatus.appExitCode, jobStatus.appExitSpec, trans);
  const sentences = endSentences(jobStatus);
  if (code === '' && sentences.length === 0) {
    return null;
  }
  return (
    <div className="pai-Job-end" data-state={jobStatus.state}>
      {code && (
        <p>
          <b>{trans.__('Exit code: %1', code)}</b>
        </p>
      )}
      {sentences.map(sentence => (
        <p key={sentence}>{sentence}</p>
      ))}
    </div>
  );
}

function Buttons({ model, jobs, known, onDeleted }: IHeadProps & { known: IKnownJob }): React.ReactElement {
  const host = useHost();
  const { trans, places } = host;
  const [busy, setBusy] = React.useState(false);
  const job = model.name;
  const status = known.detail.jobStatus;
  const ending = isEnding(status);
  const isOwnServer = jobs.isOwnServer(job);
  const act = (action: () => Promise<void>) => () => {
    setBusy(true);
    void action().finally(() => setBusy(false));
  };
  const wasDone = async (how: Ending) => {
    const { state, subState } = status;
    return (await end([{ ...job, state, subState }], how, jobs, host))?.length === 0;
  };
  return (
    <div className="pai-Job-buttons">
      {isOpen(status) && places.has('terminal') && (
        <TextButton icon="terminal" onClick={() => places.open({ page: 'terminal', job })}>
          {trans.__('Terminal')}
        </TextButton>
      )}
      {isOpen(status) && places.has('connect') && (
        <TextButton
          title={trans.__('SSH, VS Code, PyCharm and other programs: how they reach a task')}
          onClick={() => places.open({ page: 'connect', job })}
        >
          {trans.__('Connect')}
        </TextButton>
      )}
      {!isOwnServer && (
        <TextButton
          icon="refresh"
          disabled={busy}
          title={trans.__('Submit the same job under a new name')}
          onClick={act(() => runAgain(job, jobs, host))}
        >
          {trans.__('Run again')}
        </TextButton>
      )}
      {!isOwnServer && places.has('submit') && (
        <TextButton
          icon="copy"
          title={trans.__('Change the job, then submit it')}
          onClick={() => places.open({ page: 'submit', from: job })}
        >
          {trans.__('Clone and edit')}
        </TextButton>
      )}
      {model.ended ? (
        <TextButton
          icon="delete"
          disabled={busy}
          onClick={act(async () => {
            if (await wasDone('delete')) {
              onDeleted();
            }
          })}
        >
          {trans.__('Delete')}
        </TextButton>
      ) : (
        <TextButton
          icon="stop"
          disabled={busy}
          title={
            ending ? trans.__('Its tasks are being stopped: give them no more time to end by themselves') : undefined
          }
          onClick={act(async () => {
            await wasDone(ending ? 'kill' : 'stop');
            await model.refresh();
          })}
        >
          {ending ? trans.__('Kill now') : trans.__('Stop')}
        </TextButton>
      )}
    </div>
  );
}
