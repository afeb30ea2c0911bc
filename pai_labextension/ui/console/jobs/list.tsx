// Jobs as a list of which only what is in view is drawn; by mouse and by keyboard.

import { defaultRangeExtractor, measureElement, Range, useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import { JobPorts, JobPortsView } from '../access/ports';
import { IJob } from '../data/client';
import { IJobsModel, isOpen, key } from '../data/jobs';
import { IShownModel, Signal, useModel } from '../data/store';
import { stateLabel } from '../data/words';
import { ITranslation, useHost } from '../host';
import { IconButton } from '../kit/button';
import { LocalTime } from '../kit/time';
import { allOrNone, extended, ISelection, toggled } from './selection';

/** px that a row is taken to be high until one like it was drawn. */
const FIRST = 58;

/** What a row says besides what the list knows: why the job waits, and how many of its tasks have ports. */
interface ISaid {
  readonly reason: string | undefined;
  readonly ports: number;
}

/** Where a row is as high as it was taken to be, thousands of others need not be laid out anew when it is drawn. */
export class RowHeights {
  /** Return how high a job's row will be, in px. */
  of(job: IJob, said: ISaid): number {
    return this.heights.get(likeness(job, said)) ?? FIRST;
  }

  /** Note how high a job's row is, in px. */
  note(job: IJob, said: ISaid, height: number): void {
    this.heights.set(likeness(job, said), height);
  }

  private readonly heights = new Map<string, number>();
}

/** Name what makes rows as high as each other, for the most part. */
function likeness(job: IJob, { reason, ports }: ISaid): string {
  const facts = `${job.state} ${job.totalGpuNumber > 0} ${job.appExitCode !== null}`;
  return `${facts} ${job.name.length >> 3} ${reason?.length ?? 0} ${ports}`;
}

/** Rows that are drawn beyond what is in view. */
const BEYOND = 6;

/** What stands for the ports where nobody can open them. */
const UNASKED: IShownModel = { changed: new Signal(), setShown: () => undefined };

interface IJobListProps {
  model: IJobsModel;
  /** Those that are listed, in order. */
  jobs: readonly IJob[];
  selection: ISelection;
  onSelect: (selection: ISelection) => void;
  ports: JobPorts;
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
  const { model, jobs, selection, onSelect, ports, onMenu } = props;
  const { trans, places, facts } = useHost();
  useModel(facts.hasPorts ? ports : UNASKED);
  const list = React.useRef<HTMLDivElement>(null);
  const [currentKey, setCurrentKey] = React.useState<string | null>(null);
  const found = React.useMemo(() => jobs.findIndex(job => key(job) === currentKey), [jobs, currentKey]);
  const current = Math.max(0, found);
  // the row that the keyboard comes to is always drawn, or its focus would be lost when it scrolls away
  const drawn = React.useCallback(
    (range: Range) => {
      const indices = defaultRangeExtractor(range);
      return indices.includes(current) || current >= range.count
        ? indices
        : [...indices, current].sort((a, b) => a - b);
    },
    [current]
  );
  const [heights] = React.useState(() => new RowHeights());
  const said = (job: IJob) => ({ reason: model.reason(job), ports: ports.of(job).length });
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing of it is handed to what is memoised
  const virtualizer = useVirtualizer({
    count: jobs.length,
    getScrollElement: () => list.current,
    estimateSize: index => heights.of(jobs[index]!, said(jobs[index]!)),
    measureElement: (row, entry, instance) => {
      const height = measureElement(row, entry, instance);
      const job = jobs[instance.indexFromElement(row)];
      if (job) {
        heights.note(job, said(job), height);
      }
      return height;
    },
    overscan: BEYOND,
    getItemKey: index => key(jobs[index]!),
    rangeExtractor: drawn
  });
  const items = virtualizer.getVirtualItems();
  const inView = items.map(item => jobs[item.index]!);
  const seen = inView.map(job => `${key(job)} ${job.state}`).join('\n');
  // what is scrolled past is not asked about: a request takes a millisecond, and each frame has sixteen
  const { isScrolling } = virtualizer;
  React.useEffect(() => {
    if (!isScrolling) {
      model.see(inView);
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `seen` is what of them matters
  }, [model, seen, isScrolling]);

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
    virtualizer.scrollToIndex(index);
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
    const page = Math.max(1, items.length - 2 * BEYOND);
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
    if (event.target instanceof Element && event.target.closest('a')) {
      return; // a link to a port
    }
    setCurrentKey(key(job));
    if (event.shiftKey || event.ctrlKey || event.metaKey) {
      choose(job, event.shiftKey);
    } else {
      places.open({ page: 'job', job });
    }
  };
  return (
    <div ref={list} className="pai-JobList" onKeyDown={onKeyDown}>
      <div
        role="grid"
        aria-label={trans.__('My jobs')}
        aria-rowcount={jobs.length}
        aria-multiselectable="true"
        className="pai-JobList-rows"
        style={{ height: virtualizer.getTotalSize() }}
      >
        {items.map(item => {
          const job = jobs[item.index]!;
          return (
            <JobRow
              key={item.key}
              job={job}
              index={item.index}
              top={item.start}
              measure={virtualizer.measureElement}
              chosen={selection.chosen.has(key(job))}
              current={item.index === current}
              model={model}
              ports={ports}
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
  ports: JobPorts;
  /** Measures how high it is. */
  measure: (row: HTMLElement | null) => void;
  top: number;
  /** Note that the keyboard has come to it, or to something in it. */
  onFocus: () => void;
  onRow: (event: React.MouseEvent, job: IJob) => void;
  onChoose: (job: IJob, range: boolean) => void;
  /** Show its menu at a place of the page. */
  onMenu: (job: IJob, x: number, y: number) => void;
}

/** A job: its name, how it is, why it waits or how it ended, and a button for what can be done with it. */
function JobRow(props: IRowProps): React.ReactElement {
  const { job, index, chosen, current, model, ports, top, measure } = props;
  const { trans, language } = useHost();
  const reason = model.reason(job);
  const tabIndex = current ? 0 : -1;
  return (
    <div
      ref={measure}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={chosen}
      data-index={index}
      tabIndex={tabIndex}
      className="pai-JobRow"
      style={{ transform: `translateY(${top}px)` }}
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
        <span className="pai-JobRow-name">{job.name}</span>
        {model.isOwnServer(job) && <span className="pai-mod-secondary">{trans.__('this notebook server')}</span>}
        <span className="pai-State" data-state={job.state}>
          {stateLabel(job, trans)}
        </span>
        <span className="pai-JobRow-facts">
          {factsOf(job, trans).map(fact => (
            <span key={fact}>{fact}</span>
          ))}
          <LocalTime time={new Date(job.createdTime)} language={language} form="minutes" />
        </span>
        {reason && <span className="pai-JobRow-reason">{reason}</span>}
        {isOpen(job) && (
          <JobPortsView
            name={job.name}
            tasks={ports.of(job)}
            urlOf={(task, label) => ports.url(task, label)}
            trans={trans}
          />
        )}
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
function factsOf(job: IJob, trans: ITranslation): string[] {
  const found = [];
  if (job.totalGpuNumber > 0) {
    found.push(trans._n('%1 GPU', '%1 GPUs', job.totalGpuNumber));
  }
  if (job.state === 'WAITING') {
    if (job.queuePlace !== null) {
      found.push(trans.__('place %1', job.queuePlace));
    }
    found.push(trans.__('priority %1', job.priority));
  }
  if (job.appExitCode !== null) {
    found.push(trans.__('exit code %1', job.appExitCode));
  }
  return found;
}
