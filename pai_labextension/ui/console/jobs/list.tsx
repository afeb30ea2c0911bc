// Jobs as a list of rows of one height, of which only those in view are drawn; by mouse and by keyboard.

import * as React from 'react';

import { IJob } from '../data/client';
import { IJobsModel, key } from '../data/jobs';
import { shapeOf, stateLabel } from '../data/words';
import { ITranslation, useHost } from '../host';
import { IconButton } from '../kit/button';
import { allOrNone, extended, ISelection, toggled } from '../kit/selection';
import { State } from '../kit/status';
import { Ago } from '../kit/time';

/** px of a row, as the style has it. */
const ROW = 52;
/** Rows that are drawn beyond what is in view. */
const BEYOND = 6;
/** ms after the last scrolling when what is in view is asked about: a request takes a millisecond, a frame has sixteen. */
const SETTLED = 150;

interface IJobListProps {
  model: IJobsModel;
  /** Those that are listed, in order. */
  jobs: readonly IJob[];
  selection: ISelection;
  onSelect: (selection: ISelection) => void;
  /** Show the menu of a job at a place of the page. */
  onMenu: (job: IJob, x: number, y: number) => void;
}

/** Where the keyboard goes with a key; `undefined`: nowhere else. */
function next(pressed: string, current: number, last: number, page: number): number | undefined {
  switch (pressed) {
    case 'ArrowDown':
      return Math.min(last, current + 1);
    case 'ArrowUp':
      return Math.max(0, current - 1);
    case 'PageDown':
      return Math.min(last, current + page);
    case 'PageUp':
      return Math.max(0, current - page);
    case 'Home':
      return 0;
    case 'End':
      return last;
    default:
      return undefined;
  }
}

export function JobList(props: IJobListProps): React.ReactElement {
  const { model, jobs, selection, onSelect, onMenu } = props;
  const { trans, places } = useHost();
  const list = React.useRef<HTMLDivElement>(null);
  const [currentKey, setCurrentKey] = React.useState<string | null>(null);
  const found = React.useMemo(() => jobs.findIndex(job => key(job) === currentKey), [jobs, currentKey]);
  const current = Math.max(0, found);
  const [view, setView] = React.useState({ top: 0, height: 0 });
  const look = () => list.current && setView({ top: list.current.scrollTop, height: list.current.clientHeight });
  React.useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(list.current!);
    return () => observer.disconnect();
  }, []);
  const first = Math.max(0, Math.min(Math.floor(view.top / ROW), jobs.length - 1) - BEYOND);
  const past = Math.min(jobs.length, Math.ceil((view.top + view.height) / ROW) + BEYOND);
  const indices = Array.from({ length: Math.max(0, past - first) }, (_, number) => first + number);
  // the row that the keyboard comes to is always drawn, or its focus would be lost when it scrolls away
  if (current < first && jobs.length > 0) {
    indices.unshift(current);
  } else if (current >= past && current < jobs.length) {
    indices.push(current);
  }
  const inView = indices.map(index => jobs[index]!);
  const seen = inView.map(job => `${key(job)} ${job.state}`).join('\n');
  React.useEffect(() => {
    const settled = setTimeout(() => model.see(inView), SETTLED);
    return () => clearTimeout(settled);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `seen` is what of them matters
  }, [model, seen]);

  // the focus follows as soon as the row is drawn; the next key may come before that
  const moved = React.useRef(false);
  React.useLayoutEffect(() => {
    const row = moved.current ? list.current?.querySelector<HTMLElement>(`[data-index="${current}"]`) : null;
    if (row) {
      moved.current = false;
      row.focus({ preventScroll: true });
    }
  });
  const focus = (index: number) => {
    moved.current = true;
    setCurrentKey(key(jobs[index]!));
    const { scrollTop, clientHeight } = list.current!;
    const [least, most] = [(index + 1) * ROW - clientHeight, index * ROW];
    list.current!.scrollTop = Math.max(least, Math.min(scrollTop, most));
  };
  const choose = (job: IJob, range: boolean) => {
    setCurrentKey(key(job));
    onSelect(range ? extended(selection, jobs.map(key), key(job)) : toggled(selection, key(job)));
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    const row = event.target;
    // what a button, a box or a link in the row does with a key is its own business
    if (!(row instanceof HTMLElement) || row.getAttribute('role') !== 'row') {
      return;
    }
    const job = jobs[current];
    if (!job) {
      return;
    }
    const page = Math.max(1, Math.floor(view.height / ROW));
    const to = next(event.key, current, jobs.length - 1, page);
    if (to !== undefined) {
      if (event.shiftKey) {
        const begun = selection.anchor === null ? toggled(selection, key(job)) : selection;
        onSelect(extended(begun, jobs.map(key), key(jobs[to]!)));
      }
      focus(to);
    } else if (event.key === 'Enter') {
      places.open({ page: 'job', job });
    } else if (event.key === ' ') {
      choose(job, event.shiftKey);
    } else if (event.key === 'a' && (event.ctrlKey || event.metaKey)) {
      onSelect(allOrNone(selection, jobs.filter(each => !model.isOwnServer(each)).map(key)));
    } else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      const { left, bottom } = row.getBoundingClientRect();
      onMenu(job, left + 24, bottom);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const onRow = (event: React.MouseEvent, job: IJob) => {
    setCurrentKey(key(job));
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      choose(job, event.shiftKey);
    } else {
      places.open({ page: 'job', job });
    }
  };
  return (
    <div ref={list} className="pai-JobList" onKeyDown={onKeyDown} onScroll={look}>
      <div
        role="grid"
        aria-label={trans.__('My jobs')}
        aria-rowcount={jobs.length}
        aria-multiselectable="true"
        className="pai-JobList-rows"
        data-choosing={selection.chosen.size > 0}
        style={{ height: jobs.length * ROW }}
      >
        {indices.map(index => {
          const job = jobs[index]!;
          return (
            <JobRow
              key={key(job)}
              job={job}
              index={index}
              chosen={selection.chosen.has(key(job))}
              current={index === current}
              model={model}
              onFocus={() => setCurrentKey(key(job))}
              onRow={onRow}
              onChoose={choose}
              onMenu={onMenu}
            />
          );
        })}
      </div>
    </div>
  );
}

interface IRowProps {
  job: IJob;
  /** From 0, in the whole list. */
  index: number;
  chosen: boolean;
  /** Whether the keyboard comes to this row. */
  current: boolean;
  model: IJobsModel;
  /** Note that the keyboard has come to it, or to something in it. */
  onFocus: () => void;
  onRow: (event: React.MouseEvent, job: IJob) => void;
  onChoose: (job: IJob, range: boolean) => void;
  /** Show its menu at a place of the page. */
  onMenu: (job: IJob, x: number, y: number) => void;
}

/** A job: its name, how it is, why it waits or how it ended, and a button for what can be done with it. */
function JobRow(props: IRowProps): React.ReactElement {
  const { job, index, chosen, current, model } = props;
  const { trans, language } = useHost();
  const reason = model.reason(job);
  const neverFits = model.neverFits(job);
  const tabIndex = current ? 0 : -1;
  return (
    <div
      role="row"
      aria-rowindex={index + 1}
      aria-selected={chosen}
      data-index={index}
      tabIndex={tabIndex}
      className="pai-JobRow"
      style={{ transform: `translateY(${index * ROW}px)` }}
      onFocus={props.onFocus}
      onClick={event => props.onRow(event, job)}
      onContextMenu={event => {
        event.preventDefault();
        event.stopPropagation(); // JupyterLab's own menu
        props.onMenu(job, event.clientX, event.clientY);
      }}
    >
      <span role="gridcell">
        <input
          type="checkbox"
          tabIndex={tabIndex}
          aria-label={trans.__('Choose “%1”', job.name)}
          checked={chosen}
          onClick={event => {
            event.stopPropagation();
            props.onChoose(job, event.shiftKey);
          }}
          readOnly
        />
      </span>
      <div role="rowheader" className="pai-JobRow-text">
        <span className="pai-JobRow-line">
          <span className="pai-JobRow-name" title={job.name}>
            {job.name}
          </span>
          {job.totalGpuNumber > 0 && (
            <span className="pai-JobRow-gpus">{trans._n('%1 GPU', '%1 GPUs', job.totalGpuNumber)}</span>
          )}
        </span>
        <span className="pai-JobRow-facts" title={reason}>
          <State shape={shapeOf(job, neverFits)}>{stateLabel(job, trans, neverFits)}</State>
          {factsOf(job, model, trans).map(fact => (
            <span key={fact}>{fact}</span>
          ))}
          {reason ? (
            <span>{reason}</span>
          ) : (
            <Ago time={new Date(job.completedTime ?? job.createdTime)} language={language} />
          )}
        </span>
      </div>
      <span role="gridcell">
        <IconButton
          icon="more"
          label={trans.__('What can be done with “%1”', job.name)}
          aria-haspopup="menu"
          tabIndex={tabIndex}
          onClick={event => {
            event.stopPropagation();
            const { left, bottom } = event.currentTarget.getBoundingClientRect();
            props.onMenu(job, left, bottom);
          }}
        />
      </span>
    </div>
  );
}

/** Return what is said of a job besides its state. */
function factsOf(job: IJob, model: IJobsModel, trans: ITranslation): string[] {
  const found = [];
  if (model.isOwnServer(job)) {
    found.push(trans.__('this notebook server'));
  }
  if (job.state === 'WAITING' && job.queuePlace !== null) {
    found.push(trans.__('place %1', job.queuePlace));
  }
  if (job.appExitCode !== null) {
    found.push(trans.__('exit code %1', job.appExitCode));
  }
  return found;
}
