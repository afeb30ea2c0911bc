// The page of my jobs: what is looked for, what can be done with those that are chosen, and the list.

import * as React from 'react';

import { IJob, JobState } from '../data/client';
import { IJobsModel, isActive, isEnding, isOpen, key } from '../data/jobs';
import { useModel } from '../data/store';
import { stateWord } from '../data/words';
import { IHost, ITranslation, Place, useHost } from '../host';
import { TextButton } from '../kit/button';
import { Sign } from '../kit/icon';
import { IEntry, openMenu } from '../kit/menu';
import { PageError } from '../kit/status';
import { end, Ending, runAgain } from './ending';
import { JobList } from './list';
import { SchedulesModel, SchedulesView } from './schedules';
import { allOrNone, ISelection, isWhole, NOTHING } from '../kit/selection';
import { arrange, IArrangement, Order, ORDERS, PLAIN } from './selection';

const STATES: readonly JobState[] = ['RUNNING', 'WAITING', 'SUCCEEDED', 'FAILED', 'STOPPED'];

/** Stops or deletes jobs, once that was asked. */
type OnEnd = (jobs: readonly IJob[], ending: Ending) => void;

interface IJobsPageProps {
  model: IJobsModel;
  /** Shown above the jobs, where there is no page of their own. */
  schedules?: SchedulesModel;
}

export function JobsPage(props: IJobsPageProps): React.ReactElement {
  const { model, schedules } = props;
  const { trans } = useHost();
  useModel(model);
  const { jobs } = model;
  return (
    <>
      <PageError text={model.error} />
      {schedules && <SchedulesView schedules={schedules} onStarted={() => void model.refresh()} />}
      {jobs === null ? (
        !model.error && <p role="status">{trans.__('Asking for your jobs …')}</p>
      ) : jobs.length === 0 ? (
        <NoJobs />
      ) : (
        <FoundJobs {...props} jobs={jobs} />
      )}
    </>
  );
}

function NoJobs(): React.ReactElement {
  const { trans, places } = useHost();
  return places.has('submit') ? (
    <div className="pai-Empty">
      <p role="status">{trans.__('You have no jobs yet.')}</p>
      <TextButton accept icon="add" onClick={() => places.open({ page: 'submit' })}>
        {trans.__('New job')}
      </TextButton>
    </div>
  ) : (
    <p role="status">{trans.__('You have no jobs yet. Start a server, and submit one from JupyterLab.')}</p>
  );
}

function FoundJobs(props: IJobsPageProps & { jobs: readonly IJob[] }): React.ReactElement {
  const { model, jobs } = props;
  const host = useHost();
  const [arrangement, setArrangement] = React.useState<IArrangement>(PLAIN);
  const [selection, setSelection] = React.useState<ISelection>(NOTHING);
  const found = React.useMemo(() => arrange(jobs, arrangement), [jobs, arrangement]);
  // what is not listed (any more) is not chosen: nobody ends what they do not see
  const chosen = React.useMemo(
    () => (selection.chosen.size > 0 ? found.filter(job => selection.chosen.has(key(job))) : []),
    [found, selection]
  );
  const onEnd: OnEnd = (meant, ending) => {
    void end(meant, ending, model, host).then(refused => refused && setSelection(NOTHING));
  };
  const onMenu = (job: IJob, x: number, y: number) => {
    const several = chosen.length > 1 && chosen.includes(job);
    const entries = several ? entriesOfMany(chosen, onEnd, host) : entriesOf(job, model, onEnd, host);
    openMenu(entries, x, y, host.root);
  };
  return (
    <>
      <Finder arrangement={arrangement} onChange={setArrangement} />
      <ChosenJobs
        {...{ model, found, chosen, selection, onEnd }}
        total={jobs.length}
        onSelect={setSelection}
        onAll={() => setArrangement({ ...PLAIN, order: arrangement.order })}
      />
      {found.length > 0 && <JobList {...{ model, selection, onMenu }} jobs={found} onSelect={setSelection} />}
    </>
  );
}

/** What is looked for, and in which order. */
function Finder(props: {
  arrangement: IArrangement;
  onChange: (arrangement: IArrangement) => void;
}): React.ReactElement {
  const { arrangement, onChange } = props;
  const { trans } = useHost();
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
  onSelect: (selection: ISelection) => void;
  /** Look for nothing any more. */
  onAll: () => void;
  onEnd: OnEnd;
}): React.ReactElement {
  const { model, found, chosen, total, selection, onSelect, onEnd } = props;
  const { trans } = useHost();
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

/** Return what can be done with a job, as entries of a menu; nobody wants another notebook server as a job. */
export function entriesOf(job: IJob, model: IJobsModel, onEnd: OnEnd, host: IHost): IEntry[][] {
  const { trans, places } = host;
  const open: IEntry = { label: trans.__('Open'), icon: 'open', act: () => places.open({ page: 'job', job }) };
  const to = (place: Place, label: string, icon: Sign): IEntry[] =>
    places.has(place.page) ? [{ label, icon, act: () => places.open(place) }] : [];
  const inside = [
    ...to({ page: 'terminal', job }, trans.__('Terminal'), 'terminal'),
    ...to({ page: 'connect', job }, trans.__('Connect'), 'link')
  ];
  const again = [
    { label: trans.__('Run again'), icon: 'refresh' as const, act: () => void runAgain(job, model, host) },
    ...to({ page: 'submit', from: job }, trans.__('Clone and edit'), 'copy')
  ];
  const stop: IEntry = { label: trans.__('Stop …'), icon: 'stop', act: () => onEnd([job], 'stop') };
  const kill: IEntry = { label: trans.__('Kill now …'), icon: 'stop', act: () => onEnd([job], 'kill') };
  const remove: IEntry = { label: trans.__('Delete …'), icon: 'delete', act: () => onEnd([job], 'delete') };
  return [
    [open, ...(isOpen(job) ? inside : [])],
    ...(model.isOwnServer(job) ? [] : [again]),
    [...(isActive(job) ? [isEnding(job) ? kill : stop] : []), remove]
  ];
}

/** Return what can be done with several jobs at once. */
export function entriesOfMany(jobs: readonly IJob[], onEnd: OnEnd, { trans }: IHost): IEntry[][] {
  const active = jobs.filter(isActive);
  const stop: IEntry = {
    label: trans._n('Stop %1 job …', 'Stop %1 jobs …', active.length),
    icon: 'stop',
    act: () => onEnd(active, 'stop')
  };
  const remove: IEntry = {
    label: trans._n('Delete %1 job …', 'Delete %1 jobs …', jobs.length),
    icon: 'delete',
    act: () => onEnd(jobs, 'delete')
  };
  return [[...(active.length > 0 ? [stop] : []), remove]];
}
