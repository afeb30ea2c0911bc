// The head of a job's page: its state and since when, why it waits or how it ended, and what one does with it.

import * as React from 'react';

import { JobPortsView } from '../access/ports';
import { runningTasks } from '../access/tasks';
import { endSentences, exitWords, gpuCount, IKnownJob, JobModel, resultsPath, since, tasksOf } from '../data/job';
import { IJobsModel, isEnding, isOpen } from '../data/jobs';
import { shapeOf, startsIn, stateLabel, stateWord } from '../data/words';
import { JobLink } from '../generated/types.gen';
import { Place, useHost } from '../host';
import { end, Ending, runAgain } from '../jobs/ending';
import { IconButton, TextButton } from '../kit/button';
import { CopyButton } from '../kit/copy';
import { IEntry, openMenu } from '../kit/menu';
import { Figures, State } from '../kit/status';
import { durationWords, LocalTime, useNow } from '../kit/time';

/** How many buttons there are beside the menu, and how many machines are named. */
const SHOWN = 3;
const NAMED = 3;

/** What can be done with a job. */
interface IAction extends IEntry {
  readonly title?: string | undefined;
}

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
  const { trans, places, transport } = useHost();
  const { known, name: job } = model;
  const here = places.href({ page: 'job', job });
  const link = here === null ? known?.detail.consoleUrl : transport.resolve(here);
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
        <State shape={shapeOf(status, neverFits)}>{stateLabel(status, trans, neverFits)}</State>
        {jobs.isOwnServer(job) && <span className="pai-mod-secondary">{trans.__('this notebook server')}</span>}
        {link !== undefined && <CopyButton text={link} label={trans.__('Copy link')} trans={trans} />}
        {known && <Buttons {...props} known={known} />}
      </div>
      {known ? <JobFigures known={known} /> : <p>{trans.__('Virtual cluster %1', status.virtualCluster)}</p>}
      {known && <Causes known={known} user={job.username} />}
    </section>
  );
}

/** How long it has been so; `least`: at least until then. */
function Age(props: { since: number; least: number }): React.ReactElement {
  const { trans } = useHost();
  return <>{durationWords(Math.max(useNow(), props.least) - props.since, trans)}</>;
}

/** What one wants to know in numbers, each with what it is of. */
function JobFigures({ known }: { known: IKnownJob }): React.ReactElement {
  const { trans, language } = useHost();
  const { jobStatus: status, taskRoles } = known.detail;
  const { state, appLaunchedTime: launched, completedTime: completed } = status;
  const from = since(status, known.attempts);
  const ends = status.endingUntil ?? status.latestEndTime;
  const tasks = tasksOf(taskRoles, 0);
  const gpus = tasks.reduce((sum, { status: task }) => sum + gpuCount(task.containerGpus), 0);
  const nodes = [...new Set(tasks.map(({ status: task }) => task.node).filter(node => node !== ''))];
  const time = (at: number) => <LocalTime time={new Date(at)} language={language} form="minutes" />;
  const figures: [string, React.ReactNode][] = [];
  const add = (label: string, value: React.ReactNode, has = true) => has && figures.push([label, value]);
  add(trans.__('Running for'), <Age since={from} least={known.time} />, state === 'RUNNING');
  add(trans.__('Waiting for'), <Age since={from} least={known.time} />, state === 'WAITING');
  add(trans.__('Ended'), time(completed ?? 0), completed !== null);
  add(
    trans.__('Ran for'),
    durationWords((completed ?? 0) - (launched ?? 0), trans),
    completed !== null && launched !== null
  );
  add(trans.__('GPUs'), gpus, gpus > 0);
  add(trans.__('Machines'), nodes.length > NAMED ? nodes.length : nodes.join(', '), nodes.length > 0);
  add(trans.__('Virtual cluster'), status.virtualCluster);
  add(trans.__('Place in the queue'), status.queuePlace, status.queuePlace !== null);
  add(trans.__('Priority'), status.priority, state === 'WAITING');
  add(trans.__('Attempt'), known.attempts.length, known.attempts.length > 1);
  add(trans.__('Ends at the latest'), time(ends ?? 0), ends !== null);
  return <Figures figures={figures} />;
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
        <p className="pai-Job-reason" role="status" data-never={status.neverFits}>
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

/** What one does with a job: in its state what most people want, what some want, and the rest in a menu. */
function Buttons({ model, jobs, known, onDeleted }: IHeadProps & { known: IKnownJob }): React.ReactElement {
  const host = useHost();
  const { trans, places } = host;
  const [busy, setBusy] = React.useState(false);
  const job = model.name;
  const status = known.detail.jobStatus;
  const ending = isEnding(status);
  const act = (action: () => Promise<unknown>) => () => {
    setBusy(true);
    void action().finally(() => setBusy(false));
  };
  const wasDone = async (how: Ending) => {
    const { state, subState } = status;
    return (await end([{ ...job, state, subState }], how, jobs, host))?.length === 0;
  };
  const to = (place: Place, action: Omit<IAction, 'act'>): IAction[] =>
    places.has(place.page) ? [{ ...action, act: () => places.open(place) }] : [];
  const results = useResults(model, status.state === 'SUCCEEDED');
  const inside = [
    ...to({ page: 'terminal', job }, { label: trans.__('Terminal'), icon: 'terminal' }),
    ...to(
      { page: 'connect', job },
      {
        label: trans.__('Connect'),
        icon: 'link',
        title: trans.__('SSH, VS Code, PyCharm and other programs: how they reach a task')
      }
    )
  ];
  const again: IAction = {
    label: trans.__('Run again'),
    icon: 'refresh',
    title: trans.__('Submit the same job under a new name'),
    act: act(() => runAgain(job, jobs, host))
  };
  const clone = to(
    { page: 'submit', from: job },
    { label: trans.__('Clone and edit'), icon: 'copy', title: trans.__('Change the job, then submit it') }
  );
  const stop: IAction = {
    label: ending ? trans.__('Kill now') : trans.__('Stop'),
    icon: 'stop',
    title: ending ? trans.__('Its tasks are being stopped: give them no more time to end by themselves') : undefined,
    act: act(async () => {
      await wasDone(ending ? 'kill' : 'stop');
      await model.refresh();
    })
  };
  const remove: IAction = {
    label: trans.__('Delete'),
    icon: 'delete',
    act: act(async () => {
      if (await wasDone('delete')) {
        onDeleted();
      }
    })
  };
  const see: IAction[] =
    results === null ? [] : to({ page: 'storage', path: results }, { label: trans.__('Open results'), icon: 'folder' });
  // (nobody wants another notebook server as a job)
  const isOwn = jobs.isOwnServer(job);
  const [edit, same] = isOwn ? [[], []] : [clone, [again]];
  const all = !model.ended
    ? [...(isOpen(status) ? inside : []), ...(status.neverFits ? edit : []), stop, ...same, ...edit]
    : status.state === 'FAILED'
      ? [...edit, ...same]
      : [...see, ...same, ...edit];
  const shown = all.slice(0, SHOWN);
  const left = [...all.slice(SHOWN).filter(one => !shown.includes(one)), ...(model.ended ? [remove] : [])];
  const isFirst = (action: IAction) => action === shown[0] && action !== stop;
  return (
    <div className="pai-Job-buttons">
      {shown.map(action => (
        <TextButton
          key={action.label}
          icon={action.icon}
          accept={isFirst(action)}
          disabled={busy}
          title={action.title}
          onClick={action.act}
        >
          {action.label}
        </TextButton>
      ))}
      {left.length > 0 && (
        <IconButton
          icon="more"
          label={trans.__('What else can be done')}
          aria-haspopup="menu"
          disabled={busy}
          onClick={event => {
            const { left: x, bottom } = event.currentTarget.getBoundingClientRect();
            openMenu([left], x, bottom, host.root);
          }}
        />
      )}
    </div>
  );
}

/** Return where in the storage the results of a job are, once that is `wanted`; `null`: not known, or elsewhere. */
function useResults({ client, name }: JobModel, wanted: boolean): string | null {
  const { facts } = useHost();
  const [path, setPath] = React.useState<string | null>(null);
  React.useEffect(() => {
    let isHere = true;
    if (wanted) {
      client.config(name).then(
        ({ outputDir }) => isHere && setPath(resultsPath(outputDir, name.username, name.name, facts.storageRoot)),
        () => undefined // the tab that shows it says why
      );
    }
    return () => {
      isHere = false;
    };
  }, [client, name, wanted, facts.storageRoot]);
  return path;
}
