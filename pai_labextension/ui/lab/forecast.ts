// When something that waits starts, as the scheduler estimates it, in words.

import { ITranslation } from '../console/host';

/** Say when it starts, rounded up; empty where that is not known. */
export function startsIn(seconds: number | null, trans: ITranslation): string {
  if (seconds === null) {
    return '';
  }
  const minutes = Math.max(1, Math.ceil(seconds / 60));
  if (minutes <= 120) {
    return trans._n('It starts in about %1 minute.', 'It starts in about %1 minutes.', minutes);
  }
  const hours = Math.ceil(minutes / 60);
  return hours <= 48
    ? trans._n('It starts in about %1 hour.', 'It starts in about %1 hours.', hours)
    : trans._n('It starts in about %1 day.', 'It starts in about %1 days.', Math.ceil(hours / 24));
}
