// What pages have in common: an error above what is shown, a bar that shows how much of something is taken.

import * as React from 'react';

/** Shows what went wrong last; nothing where nothing did. */
export function PageError({ text }: { text: string | null }): React.ReactElement | null {
  return text ? (
    <p role="alert" className="pai-Page-error">
      {text}
    </p>
  ) : null;
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
