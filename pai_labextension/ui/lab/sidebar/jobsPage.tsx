// The page of my jobs: what is looked for, what can be done with those that are chosen, and the list.

import * as React from 'react';

import { IJob, JobState } from '../../console/data/client';
import { IHost, ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { openMenu } from '../../console/kit/menu';
import { JobPorts } from '../../console/access/ports';
import { end, Ending } from '../../console/jobs/ending';
import { IJobsModel, isActive, key } from '../../console/data/jobs';
import { PageError } from '../../console/kit/status';
import { stateWord } from '../../console/data/words';
import { arrange, IArrangement, Order, ORDERS, PLAIN } from './arrangement';
import { entriesOf, entriesOfMany } from './jobEntries';
import { JobList } from './jobList';
import { SchedulesModel } from './schedules';
import { SchedulesView } from './schedulesView';
import { allOrNone, ISelection, isWhole, NOTHING } from './selection';

const STATES: readonly JobState[] = ['RUNNING', 'WAITING', 'SUCCEEDED', 'FAILED', 'STOPPED'];

export interface IJobsPageProps {
  host: IHost;
  model: IJobsModel;
  ports: JobPorts;
  schedules: SchedulesModel;
  trans: ITranslation;
  /** Of dates, as browsers name it ("zh-CN"). */
  language: string;
  /** Show all of a job. */
  onOpen: (job: IJob) => void;
  /** Open a terminal in one of its tasks. */
  onTerminal: (job: IJob) => void;
  /** Show how to reach one of its tasks. */
  onConnect: (job: IJob) => void;
  /** Show a job of which the name is known alone. */
  onOpenRun: (user: string, job: string) => void;
  /** Submit the same job under a new name. */
  onRunAgain: (job: IJob) => void;
  /** Open the job editor with a copy of it. */
  onClone: (job: IJob) => void;
}

export function JobsPage(props: IJobsPageProps): React.ReactElement {
  const { model, trans } = props;
  const jobs = model.jobs;
  return (
    <>
      <PageError text={model.error} />
      <SchedulesView {...props} onStarted={() => void model.refresh()} />
      {jobs === null ? (
        !model.error && <p role="status">{trans.__('Asking for your jobs …')}</p>
      ) : jobs.length === 0 ? (
        <p role="status">{trans.__('You have no jobs yet. “New PAI job” opens a form to submit one.')}</p>
      ) : (
        <FoundJobs {...props} jobs={jobs} />
      )}
    </>
  );
}

function FoundJobs(props: IJobsPageProps & { jobs: readonly IJob[] }): React.ReactElement {
  const { model, jobs, trans } = props;
  const [arrangement, setArrangement] = React.useState<IArrangement>(PLAIN);
  const [selection, setSelection] = React.useState<ISelection>(NOTHING);
  const found = React.useMemo(() => arrange(jobs, arrangement), [jobs, arrangement]);
  // what is not listed (any more) is not chosen: nobody ends what they do not see
  const chosen = React.useMemo(
    () => (selection.chosen.size > 0 ? found.filter(job => selection.chosen.has(key(job))) : []),
    [found, selection]
  );
  const onEnd = (meant: readonly IJob[], ending: Ending) => {
    void end(meant, ending, model, props.host).then(refused => refused && setSelection(NOTHING));
  };
  const onMenu = (job: IJob, x: number, y: number) => {
    const actions = { ...props, onEnd };
    const several = chosen.length > 1 && chosen.includes(job);
    openMenu(
      several ? entriesOfMany(chosen, actions, trans) : entriesOf(job, model.isOwnServer(job), actions, trans),
      x,
      y,
      props.host.root
    );
  };
  return (
    <>
      <Finder arrangement={arrangement} onChange={setArrangement} trans={trans} />
      <ChosenJobs
        {...{ model, found, chosen, selection, trans, onEnd }}
        total={jobs.length}
        onSelect={setSelection}
        onAll={() => setArrangement({ ...PLAIN, order: arrangement.order })}
      />
      {found.length > 0 && (
        <JobList
          {...{ model, selection, trans, onMenu }}
          jobs={found}
          ports={props.ports}
          language={props.language}
          onSelect={setSelection}
          onOpen={props.onOpen}
        />
      )}
    </>
  );
}

/** What is looked for, and in which order. */
function Finder(props: {
  arrangement: IArrangement;
  onChange: (arrangement: IArrangement) => void;
  trans: ITranslation;
}): React.ReactElement {
  const { arrangement, onChange, trans } = props;
  const orders: Record<Order, string> = {
    state: trans.__('By state'),
    newest: trans.__('Newest first'),
    name: trans.__('By name')
  };
  return (
    <div className="pai-Finder" role="search" aria-label={trans.__('Find jobs')}>
      <input
        className="pai-Input"
        type="search"
        aria-label={trans.__('Name')}
        placeholder={trans.__('Find by name')}
        value={arrangement.words}
        onChange={event => onChange({ ...arrangement, words: event.currentTarget.value })}
      />
      <select
        className="pai-Input"
        aria-label={trans.__('State')}
        value={arrangement.state ?? ''}
        onChange={event => onChange({ ...arrangement, state: STATES.find(one => one === event.target.value) ?? null })}
      >
        <option value="">{trans.__('All states')}</option>
        {STATES.map(state => (
          <option key={state} value={state}>
            {stateWord(state, trans)}
          </option>
        ))}
      </select>
      <select
        className="pai-Input"
        aria-label={trans.__('Order')}
        value={arrangement.order}
        onChange={event => onChange({ ...arrangement, order: event.target.value as Order })}
      >
        {ORDERS.map(order => (
          <option key={order} value={order}>
            {orders[order]}
          </option>
        ))}
      </select>
    </div>
  );
}

/** How many are listed or chosen, and what can be done with these. */
function ChosenJobs(props: {
  model: IJobsModel;
  found: readonly IJob[];
  chosen: readonly IJob[];
  total: number;
  selection: ISelection;
  trans: ITranslation;
  onSelect: (selection: ISelection) => void;
  /** Look for nothing any more. */
  onAll: () => void;
  onEnd: (jobs: readonly IJob[], ending: Ending) => void;
}): React.ReactElement {
  const { model, found, chosen, total, selection, trans, onSelect, onEnd } = props;
  const rows = React.useMemo(() => found.filter(job => !model.isOwnServer(job)).map(key), [found, model]);
  const whole = React.useMemo(() => isWhole(selection, rows), [selection, rows]);
  const box = React.useCallback(
    (input: HTMLInputElement | null) => {
      if (input) {
        input.indeterminate = chosen.length > 0 && !whole;
      }
    },
    [chosen, whole]
  );
  return (
    <div className="pai-Chosen">
      <label>
        <input
          ref={box}
          type="checkbox"
          aria-label={trans.__('Choose all that are listed')}
          checked={whole}
          disabled={rows.length === 0}
          onChange={() => onSelect(allOrNone(selection, rows))}
        />
        <span role="status">
          {chosen.length > 0 ? trans.__('%1 chosen', chosen.length) : listed(found.length, total, model.whole, trans)}
        </span>
      </label>
      {chosen.length > 0 ? (
        <>
          {chosen.some(isActive) && (
            <TextButton small onClick={() => onEnd(chosen, 'stop')}>
              {trans.__('Stop')}
            </TextButton>
          )}
          <TextButton small onClick={() => onEnd(chosen, 'delete')}>
            {trans.__('Delete')}
          </TextButton>
        </>
      ) : (
        found.length < total && (
          <TextButton small onClick={props.onAll}>
            {trans.__('Show all')}
          </TextButton>
        )
      )}
    </div>
  );
}

function listed(found: number, total: number, whole: boolean, trans: ITranslation): string {
  if (!whole) {
    return trans.__('%1 jobs so far …', total);
  }
  return found < total ? trans.__('%1 of %2 jobs', found, total) : trans._n('%1 job', '%1 jobs', total);
}
