// One line of a log: its colours, what a search has found in it, whose it is and when it was written.

import * as React from 'react';

import { localText } from '../../../console/kit/time';
import { ILine } from './lines';
import { ILook, IRun, shown } from './terminal';

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

/** Draws a line anew only where it has changed. */
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
