// What pages have in common: an error above what is shown.

import * as React from 'react';

/** Shows what went wrong last; nothing where nothing did. */
export function PageError({ text }: { text: string | null }): React.ReactElement | null {
  return text ? (
    <p role="alert" className="pai-Page-error">
      {text}
    </p>
  ) : null;
}
