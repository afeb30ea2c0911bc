// My jobs as a list of which only what is in view is drawn; by mouse and by keyboard.

import { defaultRangeExtractor, measureElement, Range, useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { JobPorts } from '../../console/access/ports';
import { IJobsModel, key } from '../../console/data/jobs';
import { JobRow } from './jobRow';
import { RowHeights } from './rowHeights';
import { allOrNone, extended, ISelection, toggled } from './selection';

/** Rows that are drawn beyond what is in view. */
const BEYOND = 6;

interface IJobListProps {
  model: IJobsModel;
  /** Those that are listed, in order. */
  jobs: readonly IJob[];
  selection: ISelection;
  onSelect: (selection: ISelection) => void;
  ports: JobPorts;
  trans: ITranslation;
  language: string;
  onOpen: (job: IJob) => void;
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
  const { model, jobs, selection, onSelect, trans, onMenu } = props;
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
  const said = (job: IJob) => ({ reason: model.reason(job), ports: props.ports.of(job).length });
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
      props.onOpen(job);
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
      props.onOpen(job);
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
              ownServer={model.isOwnServer(job)}
              reason={model.reason(job)}
              ports={props.ports}
              trans={trans}
              language={props.language}
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
