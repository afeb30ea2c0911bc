// The log on a job's page: choose whose, read along, search, jump; older and newer lines come as one scrolls.

import * as React from 'react';

import { IKnownJob } from '../../data/job';
import { useSignal } from '../../data/store';
import { useHost } from '../../host';
import { IconButton, TextButton } from '../../kit/button';
import { PageError } from '../../kit/status';
import { localText } from '../../kit/time';
import { bytesText } from '../../storage/quantities';
import { ILook, IRun, Looks, shown } from './ansi';
import { Choice, JumpBar, keyOf, SearchBar, StreamChoice } from './bars';
import { LogModel } from './model';
import { ILine } from './reader';

interface ILogProps {
  model: LogModel;
  known: IKnownJob;
}

/** Pixels from an edge at which more is read, and within which the end counts as in view. */
const NEAR = 600;
const AT_EDGE = 24;

export function LogView(props: ILogProps): React.ReactElement {
  const { trans } = useHost();
  const { model } = props;
  useSignal(model.changed);
  const [query, setQuery] = React.useState('');
  const [times, setTimes] = React.useState(false);
  const [open, setOpen] = React.useState(false);
  const id = React.useId();
  const box = React.useRef<HTMLDivElement>(null);
  if (model.choice.tasks.length === 0) {
    return <p role="status">{trans.__('Nothing has been written yet: no task has started.')}</p>;
  }
  return (
    <>
      <div className="pai-Log-bar" role="group" aria-label={trans.__('Which log')}>
        <Choice model={model} known={props.known} />
        <SearchBar model={model} query={query} onQuery={setQuery} firstInView={() => firstInView(box.current)} />
        <Following {...props} />
        <IconButton
          icon="more"
          label={trans.__('More of the log')}
          aria-expanded={open}
          aria-controls={id}
          onClick={() => setOpen(!open)}
        />
      </div>
      <div className="pai-Log-bar" id={id} hidden={!open}>
        <StreamChoice model={model} />
        <label className="pai-Log-check">
          <input type="checkbox" checked={times} onChange={event => setTimes(event.target.checked)} />
          {trans.__('Times')}
        </label>
        <JumpBar model={model} />
        <Download model={model} />
      </div>
      <PageError text={model.error} />
      <Lines model={model} box={box} query={query} times={times} />
    </>
  );
}

function Download({ model }: { model: LogModel }): React.ReactElement | null {
  const { trans } = useHost();
  const { job, choice } = model;
  const { tasks, stream } = choice;
  const [task, other] = tasks;
  if (!task || other) {
    return null;
  }
  const url = job.client.logUrl(job.name, task, stream);
  if (url === '') {
    return null;
  }
  const name = `${job.name.name}-${task.role}-${task.index}-${task.attempt + 1}.${stream}.log`;
  return (
    <a className="pai-PortLink" href={url} download={name}>
      {trans.__('Download the whole log')}
    </a>
  );
}

interface ILinesProps {
  model: LogModel;
  box: React.RefObject<HTMLDivElement>;
  query: string;
  times: boolean;
}

function Lines(props: ILinesProps): React.ReactElement {
  const { trans, language } = useHost();
  const { model, box, query, times } = props;
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

/** Whether new lines come into view by themselves; where they do not, the way to the newest. */
function Following({ model, known }: ILogProps): React.ReactElement {
  const { trans } = useHost();
  const { top, size } = model.place;
  const isOver = known.detail.jobStatus.completedTime !== null;
  const where = trans.__('from %1 of %2', bytesText(top), bytesText(size));
  return (
    <span className="pai-Log-following" data-live={model.following && !isOver}>
      {model.following ? (
        <span role="status">{isOver ? trans.__('Complete') : trans.__('Following')}</span>
      ) : (
        <TextButton
          small
          icon="down"
          title={model.choice.tasks.length === 1 ? where : undefined}
          onClick={() => void model.toEnd()}
        >
          {isOver ? trans.__('To the end') : trans.__('Jump to the newest lines')}
        </TextButton>
      )}
    </span>
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

interface ILineProps {
  id: string;
  line: ILine;
  /** How characters look where it begins. */
  look: ILook;
  /** Whose it is; empty where that is clear. */
  task: string;
  /** What is looked for; empty: nothing. */
  query: string;
  /** Of the time before it; empty: there is none. */
  language: string;
  isFound: boolean;
}

/**
 * One line of a log: its colours, what a search has found in it, whose it is and when it was written.
 *
 * It is drawn anew only where it has changed.
 */
export const LogLine = React.memo((props: ILineProps): React.ReactElement => {
  const { id, line, look, task, query, language, isFound } = props;
  const runs = shown(line.text, look);
  return (
    <div
      data-line={id}
      className={`pai-Log-line${isFound ? ' pai-mod-found' : ''}${line.notice ? ' pai-mod-notice' : ''}`}
    >
      {language && !isNaN(line.time) && (
        <time className="pai-Log-time" dateTime={new Date(line.time).toISOString()}>
          {localText(new Date(line.time), language, 'clock')}
        </time>
      )}
      {task && <span className="pai-Log-task">{task}</span>}
      {runs.map((run, index) => (
        <Run key={index} run={run} query={query} />
      ))}
      {runs.length === 0 && '\n'}
    </div>
  );
});

function Run({ run, query }: { run: IRun; query: string }): React.ReactElement {
  const text = marked(run.text, query);
  const { classes, style } = dress(run.look);
  return classes || Object.keys(style).length > 0 ? (
    <span className={classes} style={style}>
      {text}
    </span>
  ) : (
    <>{text}</>
  );
}

function marked(text: string, query: string): React.ReactNode {
  if (!query) {
    return text;
  }
  const [lower, wanted] = [text.toLowerCase(), query.toLowerCase()];
  const parts: React.ReactNode[] = [];
  let at = 0;
  for (let found = lower.indexOf(wanted); found >= 0; found = lower.indexOf(wanted, at)) {
    parts.push(text.slice(at, found), <mark key={found}>{text.slice(found, found + wanted.length)}</mark>);
    at = found + wanted.length;
  }
  return parts.length === 0 ? text : [...parts, text.slice(at)];
}

/** Return JupyterLab's classes for colours with names, and the others as they are. */
function dress(look: ILook): { classes: string; style: React.CSSProperties } {
  const [fg, bg] = look.inverse ? [look.bg ?? 'default-inverse', look.fg ?? 'default-inverse'] : [look.fg, look.bg];
  const classes: string[] = [];
  const style: React.CSSProperties = {};
  if (fg?.startsWith('rgb')) {
    style.color = fg;
  } else if (fg) {
    classes.push(`ansi-${fg}-fg`);
  }
  if (bg?.startsWith('rgb')) {
    style.backgroundColor = bg;
  } else if (bg) {
    classes.push(`ansi-${bg}-bg`);
  }
  if (look.bold) {
    classes.push('ansi-bold');
  }
  if (look.underline) {
    classes.push('ansi-underline');
  }
  return { classes: classes.join(' '), style };
}
