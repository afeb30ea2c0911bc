// What the tasks of a job use or used: charts of one task, or of all of them together.

import * as React from 'react';

import { usePolled } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { PageError } from '../../console/kit/status';
import { Chart } from '../../console/kit/chart';
import { tasksOf } from './facts';
import { IKnownJob, JobModel } from './model';
import { chartsOf, MOST_MEASURED, UsageModel } from './usageModel';

/** ms between two questions. */
const INTERVAL = 5_000;

export function UsageView(props: {
  model: JobModel;
  known: IKnownJob;
  trans: ITranslation;
  language: string;
  isShown: boolean;
}): React.ReactElement {
  const { model, known, trans, language, isShown } = props;
  const last = known.attempts.at(-1);
  const rows = last ? tasksOf(known.detail.taskRoles, last.attempt) : [];
  const [chosen, setChosen] = React.useState('');
  const measured = chosen === '' ? rows.slice(0, MOST_MEASURED) : rows.filter(({ key }) => key === chosen);
  return (
    <div className="pai-Job-scroll" tabIndex={0} role="region" aria-label={trans.__('Usage')}>
      {rows.length > 1 && (
        <label>
          {trans.__('Task')}{' '}
          <select className="pai-Input" value={chosen} onChange={event => setChosen(event.target.value)}>
            <option value="">{trans.__('All tasks together')}</option>
            {rows.map(({ key }) => (
              <option key={key} value={key}>
                {key}
              </option>
            ))}
          </select>
        </label>
      )}
      {chosen === '' && rows.length > MOST_MEASURED && (
        <p role="note">{trans.__('The first %1 tasks of %2 are shown.', MOST_MEASURED, rows.length)}</p>
      )}
      {measured.length === 0 ? (
        <p role="status">{trans.__('No task has started yet.')}</p>
      ) : (
        <Charts
          key={`${last?.attempt} ${chosen}`}
          model={model}
          tasks={measured}
          trans={trans}
          language={language}
          isShown={isShown}
          hasEnded={measured.every(({ status }) => status.taskState !== 'WAITING' && status.taskState !== 'RUNNING')}
        />
      )}
    </div>
  );
}

function Charts(props: {
  model: JobModel;
  tasks: ConstructorParameters<typeof UsageModel>[2];
  trans: ITranslation;
  language: string;
  isShown: boolean;
  hasEnded: boolean;
}): React.ReactElement {
  const { model, tasks, trans, language, isShown, hasEnded } = props;
  // (made anew with the component, which has the tasks in its key)
  const [usage] = React.useState(() => new UsageModel(model.client, model.name, tasks));
  const { answer, error } = usePolled('usage', () => usage.ask(), INTERVAL, isShown);
  const charts = answer ? chartsOf(answer, trans) : [];
  return (
    <>
      <PageError text={error} />
      {charts.length === 0 && !error && (
        <p role="status">
          {answer ? trans.__('Nothing has been measured yet.') : trans.__('Asking for what is used …')}
        </p>
      )}
      <div className="pai-Charts">
        {charts.map(chart => (
          <Chart key={chart.title} {...{ chart, language, trans, hasEnded }} />
        ))}
      </div>
    </>
  );
}
