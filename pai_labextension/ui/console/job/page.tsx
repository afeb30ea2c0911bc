// The page of one job: how it is, what one does with it, and a tab for each thing to look at.

import * as React from 'react';

import { IJobName } from '../data/client';
import { messageOf } from '../data/errors';
import { IKnownJob, JobModel, resultsPath } from '../data/job';
import { IJobsModel } from '../data/jobs';
import { useSignal } from '../data/store';
import { useHost, useShown } from '../host';
import { TextButton } from '../kit/button';
import { CopyText } from '../kit/copy';
import { PageError } from '../kit/status';
import { JobHead } from './head';
import { LogModel } from './log/model';
import { LogView } from './log/view';
import { TasksView } from './tasks';
import { TimelineView, UsageView } from './timeline';

/** What is shown below the head. */
export type Tab = 'logs' | 'tasks' | 'timeline' | 'usage' | 'configuration';

export const TABS: readonly Tab[] = ['logs', 'tasks', 'timeline', 'usage', 'configuration'];

interface IJobPageProps {
  model: JobModel;
  log: LogModel;
  jobs: IJobsModel;
  tab: Tab;
  onTab: (tab: Tab) => void;
  /** The job is gone: the person has deleted it here. */
  onDeleted: () => void;
}

/** Asks only for what is in view. */
export function JobPage(props: IJobPageProps): React.ReactElement {
  const { model, log, tab } = props;
  const isShown = useShown();
  const isLogShown = isShown && tab === 'logs';
  useSignal(model.changed);
  React.useEffect(() => {
    model.setShown(isShown);
    return () => model.setShown(false);
  }, [model, isShown]);
  React.useEffect(() => {
    log.setShown(isLogShown);
    return () => log.setShown(false);
  }, [log, isLogShown]);
  return (
    <div className="pai-Page pai-Job">
      <Content {...props} />
    </div>
  );
}

/** The page of a job with models of its own; for another job it has to be another element, by its key. */
export function OpenJob(props: Omit<IJobPageProps, 'model' | 'log'> & { job: IJobName }): React.ReactElement {
  const { client } = useHost();
  const [{ model, log }] = React.useState(() => {
    const model = new JobModel(client, props.job);
    return { model, log: new LogModel(model) };
  });
  React.useEffect(
    () => () => {
      log.dispose();
      model.dispose();
    },
    [model, log]
  );
  return <JobPage {...props} model={model} log={log} />;
}

function Content(props: IJobPageProps): React.ReactElement {
  const { trans } = useHost();
  const { model } = props;
  const { known } = model;
  if (model.gone) {
    return (
      <>
        <h2>{model.name.name}</h2>
        <p role="status">{trans.__('There is no job of this name: it was deleted.')}</p>
      </>
    );
  }
  return (
    <>
      <JobHead {...props} />
      <PageError text={model.error} />
      {known === null ? (
        !model.error && <p role="status">{trans.__('Asking for the job …')}</p>
      ) : (
        <Tabs {...props} known={known} />
      )}
    </>
  );
}

function Tabs(props: IJobPageProps & { known: IKnownJob }): React.ReactElement {
  const { trans } = useHost();
  const { model, log, known, tab, onTab } = props;
  const id = React.useId();
  const names: Record<Tab, string> = {
    logs: trans.__('Logs'),
    tasks: trans.__('Tasks'),
    timeline: trans.__('Timeline'),
    usage: trans.__('Usage'),
    configuration: trans.__('Configuration')
  };
  const onKey = (event: React.KeyboardEvent<HTMLElement>) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
    const step = steps[event.key];
    if (step !== undefined) {
      const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length]!;
      onTab(next);
      event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next}"]`)?.focus();
      event.preventDefault();
    }
  };
  return (
    <>
      <div role="tablist" aria-label={trans.__('What is shown')} className="pai-Job-tabs" onKeyDown={onKey}>
        {TABS.map(one => (
          <button
            key={one}
            type="button"
            role="tab"
            data-tab={one}
            id={`${id}-${one}`}
            aria-selected={one === tab}
            aria-controls={`${id}-panel`}
            tabIndex={one === tab ? 0 : -1}
            onClick={() => onTab(one)}
          >
            {names[one]}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tab}`} className="pai-Job-panel">
        {tab === 'logs' && <LogView model={log} known={known} />}
        {tab === 'tasks' && (
          <TasksView
            model={model}
            known={known}
            onLog={task => {
              log.chooseTask(task);
              onTab('logs');
            }}
          />
        )}
        {tab === 'timeline' && <TimelineView model={model} known={known} />}
        {tab === 'usage' && <UsageView model={model} known={known} />}
        {tab === 'configuration' && <ConfigurationView model={model} />}
      </div>
    </>
  );
}

/** The job as it was submitted, to read and to copy, and the way to its results. */
function ConfigurationView({ model }: { model: JobModel }): React.ReactElement {
  const { trans, facts, places } = useHost();
  const [configuration, setConfiguration] = React.useState<Record<string, unknown> | null>(null);
  const [error, setError] = React.useState('');
  React.useEffect(() => {
    let wanted = true;
    model.client.config(model.name).then(
      answer => wanted && setConfiguration(answer),
      (reason: unknown) => wanted && setError(messageOf(reason))
    );
    return () => {
      wanted = false;
    };
  }, [model]);
  if (configuration === null) {
    return error ? <PageError text={error} /> : <p role="status">{trans.__('Asking for the job …')}</p>;
  }
  const { username, name } = model.name;
  const path = resultsPath(configuration.outputDir, username, name, facts.storageRoot);
  return (
    <div className="pai-Job-scroll" tabIndex={0} role="region" aria-label={trans.__('Configuration')}>
      {path !== null && places.has('storage') && (
        <p>
          {trans.__('Results:')}{' '}
          <TextButton
            small
            icon="folder"
            title={trans.__('Show in the storage')}
            onClick={() => places.open({ page: 'storage', path })}
          >
            {path}
          </TextButton>
        </p>
      )}
      <CopyText label={trans.__('Job')} text={JSON.stringify(configuration, null, 2)} trans={trans} />
    </div>
  );
}
