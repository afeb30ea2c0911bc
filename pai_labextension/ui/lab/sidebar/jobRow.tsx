// A job in the list: its name, how it is, why it waits or how it ended, and a button for what can be done with it.

import * as React from 'react';

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { IconButton } from '../../console/kit/button';
import { JobPorts, JobPortsView } from '../../console/access/ports';
import { isOpen } from '../../console/data/jobs';
import { stateLabel } from '../../console/data/words';
import { LocalTime } from '../../console/kit/time';

export interface IRowProps {
  job: IJob;
  /** From 0, in the whole list. */
  index: number;
  chosen: boolean;
  /** Whether the keyboard comes to this row. */
  current: boolean;
  ownServer: boolean;
  reason: string | undefined;
  ports: JobPorts;
  trans: ITranslation;
  language: string;
  /** Measures how high it is. */
  measure: (row: HTMLElement | null) => void;
  top: number;
  /** Note that the keyboard has come to it, or to something in it. */
  onFocus: () => void;
  onRow: (event: React.MouseEvent, job: IJob) => void;
  onChoose: (job: IJob, range: boolean) => void;
  /** Show its menu at a place of the page. */
  onMenu: (job: IJob, x: number, y: number) => void;
}

export function JobRow(props: IRowProps): React.ReactElement {
  const { job, index, chosen, current, ownServer, trans, language, reason, ports, top, measure } = props;
  const tabIndex = current ? 0 : -1;
  return (
    <div
      ref={measure}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={chosen}
      data-index={index}
      tabIndex={tabIndex}
      className="pai-JobRow"
      style={{ transform: `translateY(${top}px)` }}
      onFocus={props.onFocus}
      onClick={event => props.onRow(event, job)}
      onContextMenu={event => {
        event.preventDefault();
        event.stopPropagation(); // JupyterLab's own menu
        props.onMenu(job, event.clientX, event.clientY);
      }}
    >
      <span role="gridcell">
        <input
          type="checkbox"
          tabIndex={tabIndex}
          aria-label={trans.__('Choose “%1”', job.name)}
          checked={chosen}
          onClick={event => {
            event.stopPropagation();
            props.onChoose(job, event.shiftKey);
          }}
          readOnly
        />
      </span>
      <div role="rowheader" className="pai-JobRow-text">
        <span className="pai-JobRow-name">{job.name}</span>
        {ownServer && <span className="pai-mod-secondary">{trans.__('this notebook server')}</span>}
        <span className="pai-State" data-state={job.state}>
          {stateLabel(job, trans)}
        </span>
        <span className="pai-JobRow-facts">
          {facts(job, trans).map(fact => (
            <span key={fact}>{fact}</span>
          ))}
          <LocalTime time={new Date(job.createdTime)} language={language} form="minutes" />
        </span>
        {reason && <span className="pai-JobRow-reason">{reason}</span>}
        {isOpen(job) && (
          <JobPortsView
            name={job.name}
            tasks={ports.of(job)}
            urlOf={(task, label) => ports.url(task, label)}
            trans={trans}
          />
        )}
      </div>
      <span role="gridcell">
        <IconButton
          icon="more"
          label={trans.__('What can be done with “%1”', job.name)}
          aria-haspopup="menu"
          tabIndex={tabIndex}
          onClick={event => {
            event.stopPropagation();
            const { left, bottom } = event.currentTarget.getBoundingClientRect();
            props.onMenu(job, left, bottom);
          }}
        />
      </span>
    </div>
  );
}

/** Return what is said of a job besides its state. */
export function facts(job: IJob, trans: ITranslation): string[] {
  const found = [];
  if (job.totalGpuNumber > 0) {
    found.push(trans._n('%1 GPU', '%1 GPUs', job.totalGpuNumber));
  }
  if (job.state === 'WAITING') {
    if (job.queuePlace !== null) {
      found.push(trans.__('place %1', job.queuePlace));
    }
    found.push(trans.__('priority %1', job.priority));
  }
  if (job.appExitCode !== null) {
    found.push(trans.__('exit code %1', job.appExitCode));
  }
  return found;
}
