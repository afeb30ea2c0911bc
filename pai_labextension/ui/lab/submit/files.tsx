// Which files go along with a job: the patterns that choose them, and what they choose.

import * as React from 'react';

import { CodeFile } from '../../console/generated/types.gen';
import { ITranslation } from '../../console/host';
import { bytesText } from '../../console/storage/quantities';

/** Files that are named; of more it is told how many. */
const NAMED = 200;

export function PatternsInput(props: {
  label: string;
  value: readonly string[];
  onChange: (patterns: string[]) => void;
}): React.ReactElement {
  const [typed, setTyped] = React.useState<string | null>(null);
  return (
    <label>
      {props.label}
      <textarea
        className="pai-Input"
        rows={3}
        spellCheck={false}
        value={typed ?? props.value.join('\n')}
        onChange={event => {
          setTyped(event.target.value);
          props.onChange(patterns(event.target.value));
        }}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            event.stopPropagation(); // a new line, not the dialog's button
          }
        }}
      />
    </label>
  );
}

/** List the files; `null`: they are being looked for. `folder`: where they go, where that is known. */
export function Files(props: {
  files: readonly CodeFile[] | null;
  folder?: string | undefined;
  trans: ITranslation;
}): React.ReactElement {
  const { files, folder, trans } = props;
  if (files === null) {
    return <p role="status">{trans.__('Looking for the files …')}</p>;
  }
  const length = files.reduce((sum, file) => sum + file.length, 0);
  const more = files.length - NAMED;
  return (
    <>
      <p role="status">
        {folder === undefined
          ? trans.__('Files: %1, %2 in all', files.length, bytesText(length))
          : trans.__('Files: %1, %2 in all, to %3', files.length, bytesText(length), folder)}
      </p>
      <ul className="pai-Code-files" tabIndex={0} aria-label={trans.__('Files that go along')}>
        {files.slice(0, NAMED).map(({ name, length }) => (
          <li key={name}>
            <span title={name}>{name}</span>
            <span>{bytesText(length)}</span>
          </li>
        ))}
        {more > 0 && <li>{trans.__('and %1 more', more)}</li>}
      </ul>
    </>
  );
}

/** Patterns as they are typed, one in a line. */
export function patterns(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
}
