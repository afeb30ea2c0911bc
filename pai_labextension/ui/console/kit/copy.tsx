// Text to copy, values to copy into a form, a file to download.

import * as React from 'react';

import { ITranslation } from '../host';
import { IconButton, TextButton } from './button';

/** ms for which a button says that it has copied. */
const SAID = 2_000;

/** Put a text where other programs take it from; must be called while something is clicked. */
export function copyToClipboard(text: string): void {
  // (not `navigator.clipboard`: that is not there where a page came over plain http)
  const put = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener('copy', put, true);
  document.execCommand('copy');
  document.removeEventListener('copy', put, true);
}

/** A small button that copies; `label` says what, for those who do not see the text beside it. */
export function CopyButton(props: { text: string; label: string; trans: ITranslation }): React.ReactElement {
  const [copied, setCopied] = React.useState(false);
  React.useEffect(() => {
    if (!copied) {
      return undefined;
    }
    const timer = window.setTimeout(() => setCopied(false), SAID);
    return () => window.clearTimeout(timer);
  }, [copied]);
  return (
    <IconButton
      icon={copied ? 'check' : 'copy'}
      label={copied ? props.trans.__('Copied') : props.label}
      title={copied ? props.trans.__('Copied') : props.trans.__('Copy')}
      onClick={() => {
        copyToClipboard(props.text);
        setCopied(true);
      }}
    />
  );
}

/** Lines of code with a word on what they are, and a button that copies them. */
export function CopyText(props: { label: string; text: string; trans: ITranslation }): React.ReactElement {
  const { label, text, trans } = props;
  return (
    <div className="pai-CopyText" role="group" aria-label={label}>
      <span className="pai-CopyText-label">{label}</span>
      <div className="pai-CopyText-box">
        <pre tabIndex={0}>{text}</pre>
        <CopyButton text={text} label={trans.__('Copy “%1”', label)} trans={trans} />
      </div>
    </div>
  );
}

/** A value as it is typed, or words on what is to be typed. */
export type Row = readonly [name: string, value: string | { readonly words: string }];

/** What is filled in where: names as the program has them, and values to copy. */
export function ValueTable(props: { caption: string; rows: readonly Row[]; trans: ITranslation }): React.ReactElement {
  return (
    <table className="pai-Values">
      <caption>{props.caption}</caption>
      <tbody>
        {props.rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {typeof value === 'string' ? (
              <>
                <td>{value}</td>
                <td>
                  <CopyButton text={value} label={props.trans.__('Copy “%1”', name)} trans={props.trans} />
                </td>
              </>
            ) : (
              <td colSpan={2} className="pai-mod-words">
                {value.words}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A button that reads a file and hands it to the browser; why it could not stands beside it. */
export function DownloadButton(props: { label: string; name: string; read: () => Promise<Blob> }): React.ReactElement {
  const [error, setError] = React.useState('');
  const download = async () => {
    try {
      hand(await props.read(), props.name);
      setError('');
    } catch (reason) {
      setError((reason as Error).message);
    }
  };
  return (
    <>
      <TextButton icon="download" onClick={() => void download()}>
        {props.label}
      </TextButton>
      {error && <span role="alert">{error}</span>}
    </>
  );
}

/** Hand a file to the browser, which downloads it. */
export function hand(file: Blob, name: string): void {
  const link = document.createElement('a');
  // browsers append ".txt" to what is a text
  link.href = URL.createObjectURL(new Blob([file], { type: 'application/octet-stream' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
