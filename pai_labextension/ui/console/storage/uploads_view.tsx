// What is being uploaded, below the files: how far, how fast, what failed; to cancel and to try again.

import * as React from 'react';

import { ApiError } from '../data/errors';
import { useSignal } from '../data/store';
import { ITranslation, useHost } from '../host';
import { IconButton, TextButton } from '../kit/button';
import { bytesText, durationText } from './quantities';
import { UnreadableError } from './sending';
import { IUpload, Uploads } from './uploads';

/** Rows that are shown at a time; what fails and what runs comes first. */
const ROWS = 50;

/** Shows nothing until there is something to show. */
export function UploadsView({ uploads }: { uploads: Uploads }): React.ReactElement | null {
  const { trans } = useHost();
  useSignal(uploads.changed);
  const { items, active, totals } = uploads;
  if (items.every(item => item.state === 'cancelled')) {
    return null;
  }
  const failed = items.filter(item => item.state === 'failed');
  const shown = [...failed, ...items.filter(item => item.state === 'running')];
  const rest = items.filter(item => item.state === 'waiting').length;
  return (
    <section className="pai-Uploads" aria-label={trans.__('Uploads')}>
      <div className="pai-Uploads-header">
        <strong role="status">
          {active
            ? trans.__('Uploaded: %1 of %2', totals.filesOver, totals.files)
            : failed.length > 0
              ? trans.__('Not uploaded: %1 of %2', totals.failed, totals.files)
              : trans.__('Uploaded: %1', totals.filesOver)}
        </strong>
        {failed.length > 0 && (
          <TextButton small onClick={() => uploads.retry(failed)}>
            {trans.__('Try again')}
          </TextButton>
        )}
        {active ? (
          <TextButton small onClick={() => uploads.cancelAll()}>
            {trans.__('Cancel all')}
          </TextButton>
        ) : (
          <IconButton icon="close" label={trans.__('Close the list of uploads')} onClick={() => uploads.clear()} />
        )}
      </div>
      {active && (
        <>
          <Bar value={totals.bytesOver} max={totals.bytes} label={trans.__('All uploads')} />
          <p className="pai-Uploads-pace">{pace(uploads, trans)}</p>
        </>
      )}
      <ul className="pai-Uploads-list">
        {shown.slice(0, ROWS).map(item => (
          <Row key={item.target} item={item} uploads={uploads} />
        ))}
      </ul>
      {rest > 0 && <p className="pai-Uploads-pace">{trans._n('%1 more is waiting.', '%1 more are waiting.', rest)}</p>}
    </section>
  );
}

function Row({ item, uploads }: { item: IUpload; uploads: Uploads }): React.ReactElement {
  const { trans } = useHost();
  const failed = item.state === 'failed';
  return (
    <li>
      <span className="pai-Uploads-name" title={item.label}>
        {item.label}
      </span>
      {!failed && <span className="pai-Uploads-share">{share(item.sent, item.file.size)}</span>}
      {failed && (
        <IconButton
          icon="refresh"
          label={trans.__('Try “%1” again', item.label)}
          onClick={() => uploads.retry([item])}
        />
      )}
      <IconButton
        icon="close"
        label={failed ? trans.__('Give up “%1”', item.label) : trans.__('Cancel “%1”', item.label)}
        onClick={() => uploads.cancel(item)}
      />
      {failed ? (
        <p role="alert" className="pai-Reason">
          {reason(item.error, trans)}
        </p>
      ) : (
        <Bar value={item.sent} max={item.file.size} label={item.label} />
      )}
    </li>
  );
}

function Bar({ value, max, label }: { value: number; max: number; label: string }): React.ReactElement {
  return <progress aria-label={label} value={max === 0 ? 1 : value} max={max === 0 ? 1 : max} />;
}

function share(sent: number, size: number): string {
  return `${size === 0 ? 100 : Math.floor((sent * 100) / size)} %`;
}

function pace(uploads: Uploads, trans: ITranslation): string {
  const { bytes, bytesOver, speed } = uploads.totals;
  const amount = trans.__('%1 of %2', bytesText(bytesOver), bytesText(bytes));
  if (speed <= 0) {
    return amount;
  }
  return trans.__('%1 · %2/s · %3 left', amount, bytesText(speed), durationText((bytes - bytesOver) / speed));
}

/** Why an upload failed, and what to do. */
export function reason(error: unknown, trans: ITranslation): string {
  if (error instanceof ApiError && error.status !== 0) {
    return error.message;
  }
  if (error instanceof UnreadableError) {
    return trans.__('The file cannot be read any more: it was moved, deleted or changed. Choose it again.');
  }
  return trans.__('The connection broke off. What was sent is kept: try again to go on from there.');
}
