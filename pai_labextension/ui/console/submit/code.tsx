// Submit with code: which files go along with a job, and the dialog that asks for them.

import * as React from 'react';

import { IPlan, ISubmitRequest, ISubmitted } from '../data/client';
import { CodeFile } from '../generated/types.gen';
import { IHost, useHost } from '../host';
import { CheckField, TextField } from '../kit/field';
import { bytesText } from '../storage/quantities';
import { askAndSubmit, IAsked, Reason } from './dialog';

/** Files that are named; of more it is told how many. */
const NAMED = 200;

/** Ask what goes along with a job, and submit it. Resolves with the job, or `null` when it was given up. */
export async function submitWithCode(request: ISubmitRequest, host: IHost): Promise<ISubmitted | null> {
  const { client, trans } = host;
  const done = await askAndSubmit<ISubmitRequest, IPlan>(host, request, {
    title: trans.__('Submit to PAI with this folder’s code'),
    className: 'pai-Code',
    accept: () => trans.__('Submit'),
    fields: asked => <CodeFields {...asked} />,
    plan: asked => client.planCode(asked),
    filled: (typed, { include, exclude, generateName }) => ({ include, exclude, generateName, ...typed }),
    submit: (asked, onProgress, signal) => client.submitCode(asked, onProgress, signal)
  });
  return done?.submitted ?? null;
}

function CodeFields({ request, plan, problem, change }: IAsked<ISubmitRequest, IPlan>): React.ReactElement {
  const { trans } = useHost();
  return (
    <>
      <p>{trans.__('In each task the folder is %1: a command begins with cd %1.', '$PAI_JOB_NAME')}</p>
      <PatternFields {...request} onChange={changes => change({ ...request, ...changes })} />
      <CheckField
        label={trans.__('Append eight characters to the name, so that it is new')}
        checked={request.generateName ?? false}
        onChange={generateName => change({ ...request, generateName })}
      />
      {problem ? <Reason text={problem} /> : <Files files={plan?.files ?? null} folder={plan?.folder} />}
    </>
  );
}

/** Which files go along, and which of these do not. */
export function PatternFields(props: {
  include?: readonly string[] | undefined;
  exclude?: readonly string[] | undefined;
  onChange: (changes: { include: string[] } | { exclude: string[] }) => void;
}): React.ReactElement {
  const { include = [], exclude = [], onChange } = props;
  const { trans } = useHost();
  return (
    <>
      <PatternsField
        label={trans.__('Files that go along (one pattern in a line)')}
        value={include}
        onChange={include => onChange({ include })}
      />
      <PatternsField label={trans.__('Except')} value={exclude} onChange={exclude => onChange({ exclude })} />
    </>
  );
}

function PatternsField(props: {
  label: string;
  value: readonly string[];
  onChange: (patterns: string[]) => void;
}): React.ReactElement {
  const { label, value, onChange } = props;
  const [typed, setTyped] = React.useState<string | null>(null);
  return (
    <TextField
      label={label}
      lines={3}
      value={typed ?? value.join('\n')}
      onChange={text => {
        setTyped(text);
        onChange(patterns(text));
      }}
    />
  );
}

/** List the files; `null`: they are being looked for. `folder`: where they go, where that is known. */
export function Files(props: { files: readonly CodeFile[] | null; folder?: string | undefined }): React.ReactElement {
  const { files, folder } = props;
  const { trans } = useHost();
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
function patterns(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
}
