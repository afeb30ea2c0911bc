// Signs drawn as lines in the colour of the text beside them.

import * as React from 'react';

/** What is drawn in a square of 24, by lines of 2 without fill. */
const LINES = {
  add: 'M12 5v14M5 12h14',
  check: 'M5 12l5 5 9-10',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  delete: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
  down: 'M12 5v14M6 13l6 6 6-6',
  download: 'M12 4v11M7 10l5 5 5-5M5 20h14',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM13 8l3 3',
  folder: 'M3 6h6l2 2h10v11H3z',
  info: 'M12 3a9 9 0 1 0 .1 0zM12 7.500v.1M12 11v6',
  left: 'M15 6l-6 6 6 6',
  link: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-5.700l-1.500 1.500M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 5.700l1.500-1.500',
  more: 'M12 5v.1M12 12v.1M12 19v.1',
  next: 'M6 9l6 6 6-6',
  open: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  previous: 'M6 15l6-6 6 6',
  refresh: 'M20 12a8 8 0 1 1-2.500-5.800M20 3v5h-5',
  right: 'M9 6l6 6-6 6',
  save: 'M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-6h8v6',
  stop: 'M6 6h12v12H6z',
  terminal: 'M3 5h18v14H3zM7 9l3 3-3 3M12 15h5',
  up: 'M12 19V5M6 11l6-6 6 6',
  upload: 'M12 15V4M7 9l5-5 5 5M5 20h14'
} as const;

/** The name of a sign. */
export type Sign = keyof typeof LINES;

/** A sign; who does not see it is told by what it stands in. */
export function Icon({ sign }: { sign: Sign }): React.ReactElement {
  return (
    <svg className="pai-Icon" viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" focusable="false">
      <path
        d={LINES[sign]}
        fill="none"
        stroke="currentColor"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
