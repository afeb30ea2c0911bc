// What pages have in common: a state, an error above what is shown, a bar that shows how much of something is taken.

import * as React from 'react';

/** Shows what went wrong last; nothing where nothing did. */
export function PageError({ text }: { text: string | null }): React.ReactElement | null {
  return text ? (
    <p role="alert" className="pai-Page-error">
      {text}
    </p>
  ) : null;
}

/** What is drawn in a square of 16 for each state, so that none is told by its colour alone; some by lines, some filled. */
const SHAPES = {
  again: <path d="M13 8a5 5 0 1 1-1.600-3.700M13 2v3.200h-3.200" />,
  failed: <path d="M4 4l8 8M12 4l-8 8" />,
  never: <path d="M8 2.500l6 11H2zM8 6.500v3.500M8 12v.1" />,
  running: <circle cx="8" cy="8" r="5" fill="currentColor" />,
  starting: <circle cx="8" cy="8" r="5" strokeDasharray="4 2.300" />,
  stopped: <rect x="4" y="4" width="8" height="8" fill="currentColor" />,
  succeeded: <path d="M3 8.500l3.500 3.500L13 4.500" />,
  waiting: <path d="M8 3a5 5 0 1 0 .1 0M8 5.500V8l2 1.500" />
} as const;

/** A state as one sees it first. */
export type Shape = keyof typeof SHAPES;

/** A state: a shape and its words, both in its colour. */
export function State({ shape, children }: { shape: Shape; children: React.ReactNode }): React.ReactElement {
  return (
    <span className="pai-State" data-shape={shape}>
      <svg
        viewBox="0 0 16 16"
        width="14"
        height="14"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.8"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
      >
        {SHAPES[shape]}
      </svg>
      {children}
    </span>
  );
}

/** What one wants to know first, each below what it is of. */
export function Figures(props: {
  figures: readonly (readonly [string, React.ReactNode])[];
  /** Whether the page is about them. */
  large?: boolean;
}): React.ReactElement {
  const { figures, large = false } = props;
  return (
    <dl className="pai-Figures" data-large={large}>
      {figures.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt> <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface IBarProps {
  /** What it is of. */
  label: string;
  /** The same as the bar, in words. */
  text: string;
  used: number;
  total: number;
  /** A limit within it. */
  mark?: number;
}

/** Shows how much of something is taken; beside it the same in words. */
export function Bar({ label, text, used, total, mark }: IBarProps): React.ReactElement {
  const part = (value: number) => `${total > 0 ? Math.min(100, (100 * value) / total) : 0}%`;
  return (
    <div className="pai-Bar">
      <span className="pai-Bar-label">{label}</span>
      <span className="pai-Bar-text">{text}</span>
      <span
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={Math.min(used, total)}
        aria-valuetext={text}
        className="pai-Bar-whole"
      >
        <span className="pai-Bar-used" style={{ width: part(used) }} />
        {mark !== undefined && mark > 0 && mark < total && (
          <span className="pai-Bar-mark" style={{ left: part(mark) }} />
        )}
      </span>
    </div>
  );
}
