// The list of schedules above the jobs: when each runs next, what came of it last, and what can be done.

import { Dialog, showDialog } from '@jupyterlab/apputils';
import * as React from 'react';

import { ISchedule } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { TextButton } from '../../console/kit/button';
import { inWords } from '../../console/data/rhythm';
import { LocalTime } from '../../console/kit/time';
import { SchedulesModel } from './schedules';

interface ISchedulesProps {
  schedules: SchedulesModel;
  trans: ITranslation;
  /** Of dates, as browsers name it ("zh-CN"). */
  language: string;
  /** Show a job. */
  onOpenRun: (user: string, job: string) => void;
  /** A run was started. */
  onStarted: () => void;
}

/** Shows nothing where there is no schedule. */
export function SchedulesView(props: ISchedulesProps): React.ReactElement | null {
  const { schedules, trans } = props;
  const found = schedules.answer ?? [];
  if (found.length === 0) {
    return null;
  }
  return (
    <details className="pai-Schedules" open>
      <summary>{trans._n('%1 schedule', '%1 schedules', found.length)}</summary>
      {schedules.error && (
        <p role="alert" className="pai-Reason">
          {schedules.error}
        </p>
      )}
      <ul aria-label={trans.__('Schedules')}>
        {found.map(schedule => (
          <ScheduleRow key={schedule.name} {...props} schedule={schedule} />
        ))}
      </ul>
    </details>
  );
}

function ScheduleRow(props: ISchedulesProps & { schedule: ISchedule }): React.ReactElement {
  const { schedules, schedule, trans, language } = props;
  const { name, paused, nextTime } = schedule;
  const run = async () => {
    if ((await schedules.run(schedule)) !== undefined) {
      props.onStarted();
    }
  };
  return (
    <li aria-label={name}>
      <strong>{name}</strong>
      <span>{inWords(schedule.cron, schedule.timeZone, language, trans)}</span>
      <span className="pai-mod-secondary">
        {paused ? (
          trans.__('Paused')
        ) : nextTime === null ? (
          trans.__('Never due')
        ) : (
          <>
            {trans.__('Next run:')} <LocalTime time={new Date(nextTime)} language={language} form="minutes" />
          </>
        )}
      </span>
      <LastRun {...props} />
      <span className="pai-Schedules-actions">
        <TextButton small aria-label={trans.__('Run “%1” now', name)} onClick={() => void run()}>
          {trans.__('Run now')}
        </TextButton>
        <TextButton
          small
          aria-label={paused ? trans.__('Let “%1” go on', name) : trans.__('Pause “%1”', name)}
          onClick={() => void schedules.pause(schedule, !paused)}
        >
          {paused ? trans.__('Go on') : trans.__('Pause')}
        </TextButton>
        <TextButton
          small
          aria-label={trans.__('Delete schedule “%1”', name)}
          onClick={() => void remove(schedule, schedules, trans)}
        >
          {trans.__('Delete')}
        </TextButton>
      </span>
    </li>
  );
}

function LastRun(props: ISchedulesProps & { schedule: ISchedule }): React.ReactElement | null {
  const { schedule, trans, language, onOpenRun } = props;
  const last = schedule.lastRun;
  if (last === null) {
    return null;
  }
  const time = <LocalTime time={new Date(last.time)} language={language} form="minutes" />;
  if (last.outcome === 'submitted') {
    return (
      <span>
        {trans.__('Last run:')} {time},{' '}
        <a role="button" tabIndex={0} onClick={open} onKeyDown={event => event.key === 'Enter' && open()}>
          {last.job}
        </a>
      </span>
    );
  }
  return (
    <span className="pai-Reason">
      {last.outcome === 'refused' ? trans.__('Refused:') : trans.__('Left out:')} {time}. {last.message}
    </span>
  );

  function open(): void {
    onOpenRun(schedule.username, last!.job);
  }
}

async function remove(schedule: ISchedule, schedules: SchedulesModel, trans: ITranslation): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Delete schedule “%1”?', schedule.name),
    body: trans.__('It does not run any more. Its jobs and their results stay.'),
    buttons: [Dialog.cancelButton({ label: trans.__('Keep it') }), Dialog.warnButton({ label: trans.__('Delete') })]
  });
  if (answer.button.accept) {
    await schedules.delete(schedule);
  }
}
