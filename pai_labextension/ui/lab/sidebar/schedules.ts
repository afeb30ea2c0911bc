// The person's schedules as last heard, and what can be done with them.

import { Client, ISchedule } from '../../console/data/client';
import { ApiError } from '../../console/data/errors';
import { Polled } from '../../console/data/store';

/** ms between two questions: little changes in between. */
const INTERVAL = 10_000;

/** What the list of schedules shows. */
export class SchedulesModel extends Polled<readonly ISchedule[]> {
  constructor(private readonly api: Client) {
    super(() => this.list(), INTERVAL);
  }

  /** Why the last question had no answer, or what was asked for was refused; empty otherwise. */
  get error(): string {
    return this.refusal || super.error;
  }

  /** Let a schedule rest, or go on. */
  async pause(schedule: ISchedule, paused: boolean): Promise<void> {
    await this.change(() => this.api.pauseSchedule(schedule, paused));
  }

  /** Submit a job of a schedule now; return its name, or `undefined` where it was refused. */
  async run(schedule: ISchedule): Promise<string | undefined> {
    return this.change(() => this.api.runSchedule(schedule));
  }

  /** Delete a schedule. */
  async delete(schedule: ISchedule): Promise<void> {
    await this.change(() => this.api.deleteSchedule(schedule));
  }

  setShown(shown: boolean): void {
    if (shown) {
      this.refusal = '';
    }
    super.setShown(shown);
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

  private async change<Result>(action: () => Promise<Result>): Promise<Result | undefined> {
    this.refusal = '';
    let result: Result | undefined;
    try {
      result = await action();
    } catch (error) {
      this.refusal = error instanceof Error ? error.message : String(error);
    }
    await this.refresh();
    return result;
  }

  private refusal = '';
  private user: string | undefined;
}
