// What tasks have used over time: of one as it was measured, of several together.

/** A time (ms since the epoch) and a value. */
export type Point = readonly [time: number, value: number];

/** Series of one task by their names, as the scheduler gives them. */
export type Series = Readonly<Record<string, readonly Point[]>>;

/** How tasks are put together: GPUs in per cent are a mean, all else is a sum. */
export type Together = 'sum' | 'mean';

/** A line has at most so many corners; more than one per two pixels cannot be seen. */
export const MOST_CORNERS = 140;

/** Make MB per second of a count of bytes. */
export function perSecond(points: readonly Point[]): Point[] {
  return points.slice(1).map(([time, value], index) => {
    const [earlier, before] = points[index]!;
    return [time, Math.max(0, (value - before) / 1e6 / Math.max(0.001, (time - earlier) / 1000))];
  });
}

/** Leave at most `MOST_CORNERS` points: the mean of those that are close together, and the newest one. */
export function thinned(points: readonly Point[]): readonly Point[] {
  if (points.length <= MOST_CORNERS) {
    return points;
  }
  const begin = points[0]![0];
  const span = points.at(-1)![0] - begin + 1;
  const groups = new Map<number, Point[]>();
  for (const point of points) {
    const group = Math.floor(((point[0] - begin) * (MOST_CORNERS - 1)) / span);
    groups.set(group, [...(groups.get(group) ?? []), point]);
  }
  const means = [...groups.values()].map((near): Point => {
    const sum = near.reduce((total, [, value]) => total + value, 0);
    return [near.at(-1)![0], sum / near.length];
  });
  return [...means.slice(0, -1), points.at(-1)!];
}

/**
 * Put the same series of several tasks together. Tasks are measured at times of their own: between two of its
 * measurements a task counts with the earlier one, and before its first and after its last one not at all.
 */
export function together(tasks: readonly (readonly Point[])[], how: Together): Point[] {
  const measured = tasks.filter(points => points.length > 0);
  if (measured.length <= 1) {
    return [...(measured[0] ?? [])];
  }
  const begin = Math.min(...measured.map(points => points[0]![0]));
  const end = Math.max(...measured.map(points => points.at(-1)![0]));
  const longest = Math.max(...measured.map(points => points.length));
  const steps = Math.max(1, Math.min(MOST_CORNERS, longest) - 1);
  const step = Math.max(1, (end - begin) / steps);
  const result: Point[] = [];
  const places = measured.map(() => 0);
  for (let number = 0; number <= steps; number += 1) {
    const time = Math.round(begin + number * step);
    let [sum, count] = [0, 0];
    measured.forEach((points, task) => {
      while (places[task]! + 1 < points.length && points[places[task]! + 1]![0] <= time) {
        places[task]! += 1;
      }
      // one that was measured a moment after the beginning, or before the end, is there then, too
      if (points[0]![0] - step <= time && points.at(-1)![0] + step >= time) {
        sum += points[places[task]!]![1];
        count += 1;
      }
    });
    if (count > 0) {
      result.push([time, how === 'mean' ? sum / count : sum]);
    }
  }
  return result;
}

/** Return the round number at which a scale that holds `highest` ends; `whole`: where it ends if values stay below. */
export function scaleTop(highest: number, whole = 0): number {
  if (highest <= whole || highest <= 0) {
    return whole || 1;
  }
  const power = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 4, 5, 10].map(step => step * power).find(top => top >= highest * (1 - 1e-9))!;
}

/** Write a value with as many digits as say something. */
export function digits(value: number, language: string): string {
  const most = value >= 100 ? 0 : value >= 1 ? 1 : 2;
  return value.toLocaleString(language, { maximumFractionDigits: most });
}
