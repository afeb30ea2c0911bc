// The head of a job's page: its state and since when, why it waits or how it ended, and what one does with it.

import * as React from 'react';

import { Client, IJob, IJobName } from '../../console/data/client';
import { IHost, ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { JobPortsView } from '../../console/access/ports';
import { runningTasks } from '../../console/access/tasks';
import { Ending, runAgain } from '../../console/jobs/ending';
import { startsIn, stateLabel, stateWord } from '../../console/data/words';
import { JobLink } from '../../console/generated/types.gen';
import { isEnding } from '../../console/data/jobs';
import { LocalTime } from '../../console/kit/time';
import { durationWords, endSentences, exitWords, since } from './facts';
import { LogModel } from './log/model';
import { IKnownJob, JobModel } from './model';

/** What the page needs from outside. */
export interface IJobPageProps {
  host: IHost;
  model: JobModel;
  log: LogModel;
  access: Client;
  /** What the list knows of the job; `undefined` where it is not in it. */
  listed: () => IJob | undefined;
  trans: ITranslation;
  /** Of dates, as browsers name it ("zh-CN"). */
  language: string;
  /** Whether the job is the notebook server in front of which the person sits. */
  isOwnServer: boolean;
  /** What the cluster calls its storage. */
  storageRoot: string;
  onTerminal: () => void;
  onConnect: () => void;
  /** Open the editor with this job's configuration; absent where there is none that takes it. */
  onClone: () => void;
  /** Show another job. */
  onOpen: (job: IJobName) => void;
  onResults: (path: string) => void;
  /** Stop or delete the job, once that was asked; resolves with whether it was done. */
  onEnd: (ending: Ending) => Promise<boolean>;
  /** The job is gone. */
  onDeleted: () => void;
}

/** Shows how a job is, whatever else its page shows. */
export function JobHead(props: IJobPageProps & { known: IKnownJob }): React.ReactElement {
  const { model, known, trans, isOwnServer } = props;
  const { detail, attempts } = known;
  const status = detail.jobStatus;
  return (
    <section className="pai-Job-head" aria-label={trans.__('State of “%1”', detail.name)}>
      <div className="pai-Page-header">
        <h2>{detail.name}</h2>
        <Buttons {...props} />
      </div>
      <p className="pai-Job-facts">
        <span className="pai-State" data-state={status.state}>
          {stateLabel(status, trans)}
        </span>{' '}
        {isOwnServer && <span>{trans.__('this notebook server')}</span>}
        <Since known={known} language={props.language} trans={trans} />
        <span>{trans.__('Virtual cluster %1', status.virtualCluster)}</span>
        <span>{trans.__('Priority: %1', status.priority)}</span>
        {status.queuePlace !== null && <span>{trans.__('Place %1 in the queue', status.queuePlace)}</span>}
        {attempts.length > 1 && <span>{trans.__('Attempt %1', attempts.length)}</span>}
        {status.latestEndTime !== null && (
          <span>
            {trans.__('Ends at the latest:')}{' '}
            <LocalTime time={new Date(status.latestEndTime)} language={props.language} form="minutes" />
          </span>
        )}
        {status.endingUntil !== null && (
          <span>
            {trans.__('Ends at the latest:')}{' '}
            <LocalTime time={new Date(status.endingUntil)} language={props.language} form="seconds" />
          </span>
        )}
      </p>
      {(status.waitingReason || status.startsWithin !== null) && (
        <p className="pai-Job-reason" role="status">
          {status.waitingReason} {startsIn(status.startsWithin, trans)}
        </p>
      )}
      <Links
        title={trans.__('Starts after:')}
        links={status.dependencies}
        count={status.dependencies.length}
        {...{ user: model.name.username, onOpen: props.onOpen, trans }}
      />
      <Links
        title={trans.__('Jobs that start after it:')}
        links={status.dependents}
        count={status.dependentCount}
        {...{ user: model.name.username, onOpen: props.onOpen, trans }}
      />
      <End known={known} trans={trans} />
      <Ports user={model.name.username} known={known} access={props.access} trans={trans} />
    </section>
  );
}

interface ILinksProps extends Pick<IJobPageProps, 'onOpen' | 'trans'> {
  title: string;
  links: readonly JobLink[];
  /** How many there are, of which the first are in `links`. */
  count: number;
  user: string;
}

/** Jobs that the job waits for, or that wait for it: each leads to its page, unless it is deleted. */
function Links({ title, links, count, user, onOpen, trans }: ILinksProps): React.ReactElement | null {
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
      {links.map(({ job, on, state }, index) => (
        <span key={index}>
          {state === null ? (
            job
          ) : (
            <button type="button" className="pai-LinkButton" onClick={() => onOpen({ name: job, username: user })}>
              {job}
            </button>
          )}{' '}
          ({ends[on]}): {state === null ? trans.__('deleted') : stateWord(state, trans)}
        </span>
      ))}
      {count > links.length && <span>{trans.__('and %1 more', count - links.length)}</span>}
    </p>
  );
}

function Since(props: { known: IKnownJob; language: string; trans: ITranslation }): React.ReactElement {
  const { known, language, trans } = props;
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

function End({ known, trans }: { known: IKnownJob; trans: ITranslation }): React.ReactElement | null {
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

function Ports(props: {
  user: string;
  known: IKnownJob;
  access: Client;
  trans: ITranslation;
}): React.ReactElement | null {
  const { user, known, access, trans } = props;
  const { detail } = known;
  const open = detail.jobStatus.state === 'RUNNING' && !isEnding(detail.jobStatus);
  const tasks = open
    ? runningTasks({ username: user, name: detail.name }, detail).filter(({ ports }) => ports.length > 0)
    : [];
  return (
    <JobPortsView name={detail.name} tasks={tasks} urlOf={(task, label) => access.portUrl(task, label)} trans={trans} />
  );
}

function Buttons(props: IJobPageProps & { known: IKnownJob }): React.ReactElement {
  const { model, known, trans, isOwnServer, onTerminal, onConnect, onClone, onOpen, onEnd, onDeleted } = props;
  const [busy, setBusy] = React.useState(false);
  const ending = isEnding(known.detail.jobStatus);
  const isOpen = known.detail.jobStatus.state === 'RUNNING' && !ending;
  const act = (action: () => Promise<void>) => () => {
    setBusy(true);
    void action().finally(() => setBusy(false));
  };
  return (
    <div className="pai-Job-buttons">
      {isOpen && (
        <>
          <TextButton icon="terminal" onClick={onTerminal}>
            {trans.__('Terminal')}
          </TextButton>
          <TextButton
            title={trans.__('SSH, VS Code, PyCharm and other programs: how they reach a task')}
            onClick={onConnect}
          >
            {trans.__('Connect')}
          </TextButton>
        </>
      )}
      {!isOwnServer && (
        <TextButton
          icon="refresh"
          disabled={busy}
          title={trans.__('Submit the same job under a new name')}
          onClick={act(async () => {
            const other = await runAgain(model.name, props.host);
            if (other) {
              onOpen(other);
            }
          })}
        >
          {trans.__('Run again')}
        </TextButton>
      )}
      {!isOwnServer && (
        <TextButton icon="copy" title={trans.__('Change the job, then submit it')} onClick={onClone}>
          {trans.__('Clone and edit')}
        </TextButton>
      )}
      {model.ended ? (
        <TextButton
          icon="delete"
          disabled={busy}
          onClick={act(async () => {
            if (await onEnd('delete')) {
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
            await onEnd(ending ? 'kill' : 'stop');
            await model.refresh();
          })}
        >
          {ending ? trans.__('Kill now') : trans.__('Stop')}
        </TextButton>
      )}
    </div>
  );
}
