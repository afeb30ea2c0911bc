// The page of one job, in the main area: how it is, what one does with it, and a tab for each thing to look at.

import * as React from 'react';

import { IAttemptTask, IJobName } from '../../console/data/client';
import { OnSignal } from '../../console/data/store';
import { PageError } from '../../console/kit/status';
import { ShownWidget } from '../shownWidget';
import { ConfigurationView } from './configuration';
import { tasksOf } from './facts';
import { JobGlance } from './glance';
import { IJobPageProps, JobHead } from './head';
import { LogView } from './log/view';
import { IKnownJob } from './model';
import { TasksView } from './tasks';
import { TimelineView } from './timeline';
import { UsageView } from './usage';

/** What is shown below the head. */
export type Tab = 'logs' | 'tasks' | 'timeline' | 'usage' | 'configuration';

const TABS: readonly Tab[] = ['logs', 'tasks', 'timeline', 'usage', 'configuration'];

export class JobPage extends ShownWidget {
  constructor(private readonly props: IJobPageProps) {
    super();
    this.addClass('pai-Page');
    this.addClass('pai-Job');
    props.model.changed.connect(() => this.followLog());
  }

  get job(): IJobName {
    return this.props.model.name;
  }

  /** Ask for what it shows first, before it is in view. */
  begin(): void {
    this.props.model.begin();
  }

  dispose(): void {
    if (!this.isDisposed) {
      this.props.model.dispose();
      this.props.log.dispose();
    }
    super.dispose();
  }

  protected render(): React.ReactElement {
    const { model } = this.props;
    return (
      <OnSignal signal={model.changed}>
        {() => (
          <Content
            {...this.props}
            tab={this.tab}
            isShown={this.isShown}
            onTab={tab => this.turnTo(tab)}
            onLog={task => {
              this.props.log.choose({ tasks: [task], stream: this.props.log.choice.stream });
              this.chosen = true;
              this.turnTo('logs');
            }}
            onChosen={() => {
              this.chosen = true;
            }}
          />
        )}
      </OnSignal>
    );
  }

  private turnTo(tab: Tab): void {
    this.tab = tab;
    this.setShown(this.isVisible);
  }

  /** Only what is in view is asked for. */
  protected setShown(shown: boolean): void {
    this.isShown = shown;
    this.props.model.setShown(shown);
    this.props.log.setShown(shown && this.tab === 'logs');
    this.update();
  }

  /** Show the log of the last attempt until another one is chosen: of the task that decided it, else the first. */
  private followLog(): void {
    const { model, log } = this.props;
    const last = model.known?.attempts.at(-1);
    if (this.chosen || !last) {
      return;
    }
    const { trigger } = last;
    const [first] = tasksOf(model.known!.detail.taskRoles, last.attempt);
    const task: IAttemptTask | undefined = trigger
      ? { role: trigger.taskRole, index: trigger.taskIndex, attempt: last.attempt }
      : first && { role: first.role, index: first.index, attempt: last.attempt };
    if (task) {
      log.choose({ tasks: [task], stream: log.choice.stream });
    }
  }

  private tab: Tab = 'logs';
  private chosen = false;
  private isShown = false;
}

interface IContentProps extends IJobPageProps {
  tab: Tab;
  isShown: boolean;
  onTab: (tab: Tab) => void;
  onLog: (task: IAttemptTask) => void;
  onChosen: () => void;
}

function Content(props: IContentProps): React.ReactElement {
  const { model, trans } = props;
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
      {known === null ? <JobGlance {...props} job={props.listed()} /> : <JobHead {...props} known={known} />}
      <PageError text={model.error} />
      {known === null ? (
        !model.error && <p role="status">{trans.__('Asking for the job …')}</p>
      ) : (
        <Tabs {...props} known={known} />
      )}
    </>
  );
}

function Tabs(props: IContentProps & { known: IKnownJob }): React.ReactElement {
  const { model, known, trans, tab, onTab } = props;
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
        {tab === 'logs' && (
          <LogView
            model={props.log}
            job={model}
            known={known}
            trans={trans}
            language={props.language}
            onChosen={props.onChosen}
          />
        )}
        {tab === 'tasks' && <TasksView {...props} />}
        {tab === 'timeline' && <TimelineView {...props} />}
        {tab === 'usage' && <UsageView {...props} />}
        {tab === 'configuration' && <ConfigurationView {...props} />}
      </div>
    </>
  );
}
