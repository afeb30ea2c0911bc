// The person's schedules: when each runs next, what came of it last, and what can be done with it.

import * as React from 'react';

import { Client, ISchedule } from '../data/client';
import { ApiError } from '../data/errors';
import { inWords } from '../data/rhythm';
import { Changeable, useModel } from '../data/store';
import { useHost } from '../host';
import { TextButton } from '../kit/button';
import { confirm } from '../kit/dialog';
import { PageError } from '../kit/status';
import { LocalTime } from '../kit/time';

/** ms between two questions: little changes in between. */
const INTERVAL = 10_000;

/** What the list of schedules shows. */
export class SchedulesModel extends Changeable<readonly ISchedule[]> {
  constructor(private readonly api: Client) {
    super(() => this.list(), INTERVAL);
  }

  /** Let a schedule rest, or go on. */
  async pause(schedule: ISchedule, paused: boolean): Promise<void> {
    await this.attempt(() => this.api.pauseSchedule(schedule, paused));
  }

  /** Submit a job of a schedule now; return its name, or `undefined` where it was refused. */
  async run(schedule: ISchedule): Promise<string | undefined> {
    return this.attempt(() => this.api.runSchedule(schedule));
  }

  /** Delete a schedule. */
  async delete(schedule: ISchedule): Promise<void> {
    await this.attempt(() => this.api.deleteSchedule(schedule));
  }

  private async list(): Promise<ISchedule[]> {
    this.user ??= (await this.api.whoami()).username;
    try {
      return await this.api.schedules(this.user);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) {
        return []; // an older scheduler has none
      }
      throw error;
    }
  }

  private user: string | undefined;
}

interface ISchedulesProps {
  schedules: SchedulesModel;
  /** A run was started. */
  onStarted: () => void;
}

/** The schedules as a page of their own. */
export function SchedulesPage(props: ISchedulesProps): React.ReactElement {
  const { schedules } = props;
  const { trans } = useHost();
  useModel(schedules);
  if (schedules.answer !== null && schedules.answer.length > 0) {
    return <Schedules {...props} found={schedules.answer} />;
  }
  return (
    <>
      <PageError text={schedules.error} />
      <p role="status">
        {schedules.answer
          ? trans.__(
              'You have no schedules. “pai schedule” makes one, and in JupyterLab the menu of a notebook or script does.'
            )
          : !schedules.error && trans.__('One moment …')}
      </p>
    </>
  );
}

/** Shows nothing where there is no schedule. */
export function SchedulesView(props: ISchedulesProps): React.ReactElement | null {
  const { schedules } = props;
  useModel(schedules);
  const found = schedules.answer ?? [];
  return found.length === 0 ? null : <Schedules {...props} found={found} />;
}

function Schedules(props: ISchedulesProps & { found: readonly ISchedule[] }): React.ReactElement {
  const { schedules, found } = props;
  const { trans } = useHost();
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
  const { schedules, schedule } = props;
  const host = useHost();
  const { trans, language } = host;
  const { name, paused, nextTime } = schedule;
  const run = async () => {
    if ((await schedules.run(schedule)) !== undefined) {
      props.onStarted();
    }
  };
  const remove = async () => {
    const isMeant = await confirm(host, {
      title: trans.__('Delete schedule “%1”?', name),
      text: trans.__('It does not run any more. Its jobs and their results stay.'),
      accept: trans.__('Delete'),
      cancel: trans.__('Keep it'),
      warn: true
    });
    if (isMeant) {
      await schedules.delete(schedule);
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
      <LastRun schedule={schedule} />
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
        <TextButton small aria-label={trans.__('Delete schedule “%1”', name)} onClick={() => void remove()}>
          {trans.__('Delete')}
        </TextButton>
      </span>
    </li>
  );
}

function LastRun({ schedule }: { schedule: ISchedule }): React.ReactElement | null {
  const { trans, language, places } = useHost();
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
    places.open({ page: 'job', job: { username: schedule.username, name: last!.job } });
  }
}
