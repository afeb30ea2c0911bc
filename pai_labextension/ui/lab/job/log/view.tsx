// The log on a job's page: choose whose, read along, search, jump; older and newer lines come as one scrolls.

import * as React from 'react';

import { OnSignal } from '../../../console/data/store';
import { ITranslation } from '../../../console/host';
import { TextButton } from '../../../console/kit/button';
import { PageError } from '../../../console/kit/status';
import { bytesText } from '../../../console/storage/quantities';
import { IKnownJob, JobModel } from '../model';
import { JumpBar, SearchBar } from './bars';
import { Choice } from './choice';
import { keyOf } from './groups';
import { LogLine } from './line';
import { ILine } from './lines';
import { Looks } from './looks';
import { LogModel } from './model';

interface ILogProps {
  model: LogModel;
  job: JobModel;
  known: IKnownJob;
  trans: ITranslation;
  language: string;
  /** The person has chosen a log. */
  onChosen: () => void;
}

/** Pixels from an edge at which more is read, and within which the end counts as in view. */
const NEAR = 600;
const AT_EDGE = 24;

export function LogView(props: ILogProps): React.ReactElement {
  return <OnSignal signal={props.model.changed}>{() => <Log {...props} />}</OnSignal>;
}

function Log(props: ILogProps): React.ReactElement {
  const { model, trans } = props;
  const [query, setQuery] = React.useState('');
  const [times, setTimes] = React.useState(false);
  const box = React.useRef<HTMLDivElement>(null);
  if (model.choice.tasks.length === 0) {
    return <p role="status">{trans.__('Nothing has been written yet: no task has started.')}</p>;
  }
  return (
    <>
      <div className="pai-Log-bar" role="group" aria-label={trans.__('Which log')}>
        <Choice {...props} />
        <label className="pai-Log-check">
          <input type="checkbox" checked={times} onChange={event => setTimes(event.target.checked)} />
          {trans.__('Times')}
        </label>
        <Download {...props} />
      </div>
      <div className="pai-Log-bar">
        <SearchBar {...props} query={query} onQuery={setQuery} firstInView={() => firstInView(box.current)} />
        <JumpBar {...props} />
      </div>
      <PageError text={model.error} />
      <Lines {...props} box={box} query={query} times={times} />
      <Foot {...props} />
    </>
  );
}

function Download({ model, job, trans }: ILogProps): React.ReactElement | null {
  const { tasks, stream } = model.choice;
  const [task, other] = tasks;
  if (!task || other) {
    return null;
  }
  const name = `${job.name.name}-${task.role}-${task.index}-${task.attempt + 1}.${stream}.log`;
  return (
    <a className="pai-PortLink" href={job.client.logUrl(job.name, task, stream)} download={name}>
      {trans.__('Download the whole log')}
    </a>
  );
}

interface ILinesProps extends ILogProps {
  box: React.RefObject<HTMLDivElement>;
  query: string;
  times: boolean;
}

function Lines(props: ILinesProps): React.ReactElement {
  const { model, trans, language, box, query, times } = props;
  const { lines, choice, found } = model;
  const [known] = React.useState(() => new Looks());
  const looks = React.useMemo(() => known.of(lines), [known, lines]);
  // what is typed is seen first, and marked in the lines when there is time for that: there are a thousand and more
  const marked = React.useDeferredValue(query);
  const drawn = React.useMemo(
    () =>
      lines.map((line, index) => (
        <LogLine
          key={idOf(line)}
          id={idOf(line)}
          line={line}
          look={looks[index]!}
          task={choice.tasks.length > 1 ? keyOf(choice.tasks[line.task]!) : ''}
          query={marked}
          language={times ? language : ''}
          isFound={line === found}
        />
      )),
    [lines, looks, choice, marked, times, language, found]
  );
  // the line that stays where it is while others come before it
  const anchor = React.useRef<{ id: string; top: number } | null>(null);
  React.useLayoutEffect(() => {
    const element = box.current;
    if (!element) {
      return;
    }
    if (model.following) {
      element.scrollTo({ top: element.scrollHeight });
    } else if (anchor.current) {
      const line = element.querySelector<HTMLElement>(`[data-line="${anchor.current.id}"]`);
      if (line) {
        element.scrollTo({ top: line.offsetTop - anchor.current.top });
      }
    }
    // a short part is filled up
    if (lines.length > 0 && element.scrollHeight < element.clientHeight + NEAR && element.clientHeight > 0) {
      void model.more(true);
    }
  }, [lines, model, times, box]);
  React.useEffect(() => {
    // the end stays in view when what is above the log grows
    const observer = new ResizeObserver(() => {
      if (model.following) {
        box.current?.scrollTo({ top: box.current.scrollHeight });
      }
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [model, box]);
  React.useEffect(() => {
    return model.revealed.connect(what => {
      // when they are drawn
      requestAnimationFrame(() => {
        const element = box.current;
        if (element && typeof what === 'object') {
          element.querySelector(`[data-line="${idOf(what)}"]`)?.scrollIntoView({ block: 'center' });
        } else if (element) {
          element.scrollTo({ top: what === 'start' ? 0 : element.scrollHeight });
        }
      });
    });
  }, [model, box]);
  const onScroll = () => {
    const element = box.current!;
    // another log is about to come
    if (!model.isKnown || model.lines.length === 0) {
      return;
    }
    const below = element.scrollHeight - element.clientHeight - element.scrollTop;
    const first = lineInView(element);
    anchor.current = first && { id: first.dataset.line!, top: first.offsetTop - element.scrollTop };
    model.setFollowing(model.atEnd && below < AT_EDGE);
    if (element.scrollTop < NEAR) {
      void model.more(true);
    }
    if (below < NEAR) {
      void model.more(false);
    }
  };
  return (
    <div
      ref={box}
      className="pai-Log jp-RenderedText"
      role="log"
      aria-live="off"
      aria-label={trans.__('Log')}
      aria-busy={!model.isKnown && !model.error}
      tabIndex={0}
      onScroll={onScroll}
    >
      {lines.length === 0 ? (
        <p role="status">
          {model.isKnown || model.error ? trans.__('Nothing has been written yet.') : trans.__('Reading the log …')}
        </p>
      ) : (
        <pre>{drawn}</pre>
      )}
    </div>
  );
}

function Foot({ model, known, trans }: ILogProps): React.ReactElement {
  const { top, size } = model.place;
  const single = model.choice.tasks.length === 1;
  const isOver = known.detail.jobStatus.completedTime !== null;
  return (
    <p className="pai-Log-foot">
      <span role="status">
        {model.following
          ? isOver
            ? trans.__('The job has ended: this is its end.')
            : trans.__('New lines appear here by themselves.')
          : trans.__('You are looking at an older part.')}
      </span>{' '}
      {single && size > 0 && <span>{trans.__('from %1 of %2', bytesText(top), bytesText(size))}</span>}{' '}
      {!model.following && (
        <TextButton small onClick={() => void model.toEnd()}>
          {trans.__('To the end')}
        </TextButton>
      )}
    </p>
  );
}

function idOf({ task, start }: ILine): string {
  return `${task}:${start}`;
}

/** Find the first line that is in view: lines are in the order of their places. */
function lineInView(box: HTMLElement): HTMLElement | null {
  const lines = box.querySelectorAll<HTMLElement>('[data-line]');
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const line = lines[middle]!;
    if (line.offsetTop + line.offsetHeight <= box.scrollTop) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return lines[low] ?? null;
}

function firstInView(box: HTMLElement | null): number {
  const line = box && lineInView(box);
  return line ? Array.from(box.querySelectorAll('[data-line]')).indexOf(line) : 0;
}
