// What has happened to a job: a bar of what it did for how long, and every event with its cause, the newest first.

import * as React from 'react';

import { usePolled } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { PageError } from '../../console/kit/status';
import { LocalTime } from '../../console/kit/time';
import { durationWords, ISpan, spansOf } from './facts';
import { IKnownJob, JobModel } from './model';

/** ms between two questions, and events that are listed, the newest ones. */
const INTERVAL = 4_000;
const EVENTS = 500;

export function TimelineView(props: {
  model: JobModel;
  known: IKnownJob;
  trans: ITranslation;
  language: string;
  isShown: boolean;
}): React.ReactElement {
  const { model, known, trans, language, isShown } = props;
  const { answer, error } = usePolled('events', () => model.client.events(model.name), INTERVAL, isShown);
  const events = (answer ?? []).slice(-EVENTS).reverse();
  const older = (answer ?? []).length - events.length;
  return (
    <div className="pai-Job-scroll" tabIndex={0} role="region" aria-label={trans.__('Timeline')}>
      <Bar spans={spansOf(known.detail.jobStatus, known.attempts, known.time)} trans={trans} />
      <PageError text={error} />
      <ol className="pai-Events" aria-label={trans.__('What has happened')}>
        {events.map(event => (
          <li key={event.id}>
            <LocalTime time={new Date(event.time)} language={language} form="seconds" />
            <b>
              {event.taskRole === null ? '' : `${event.taskRole}-${event.taskIndex}`}
              {event.attempt !== null && known.attempts.length > 1 && (
                <> {trans.__('(attempt %1)', event.attempt + 1)}</>
              )}
            </b>
            <span>{event.message || event.type}</span>
          </li>
        ))}
      </ol>
      {older > 0 && <p>{trans._n('… and %1 earlier event', '… and %1 earlier events', older)}</p>}
    </div>
  );
}

function Bar({ spans, trans }: { spans: readonly ISpan[]; trans: ITranslation }): React.ReactElement | null {
  const [first, last] = [spans[0], spans.at(-1)];
  if (!first || !last) {
    return null;
  }
  const words: Record<ISpan['kind'], string> = {
    WAITING: trans.__('Waiting'),
    STARTING: trans.__('Starting'),
    RUNNING: trans.__('Running')
  };
  const told = (kind: ISpan['kind']) => {
    const all = spans.filter(span => span.kind === kind).reduce((sum, { begin, end }) => sum + end - begin, 0);
    return trans.__('%1 for %2', words[kind], durationWords(all, trans));
  };
  const kinds = [...new Set(spans.map(({ kind }) => kind))];
  return (
    <figure className="pai-Spans">
      <div className="pai-Spans-bar" role="img" aria-label={kinds.map(told).join(', ')}>
        {spans.map(({ kind, begin, end }) => (
          <span
            key={begin}
            data-kind={kind}
            style={{ flexGrow: end - begin }}
            title={`${words[kind]}: ${durationWords(end - begin, trans)}`}
          />
        ))}
      </div>
      <figcaption>
        {kinds.map(kind => (
          <span key={kind} data-kind={kind}>
            {told(kind)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
