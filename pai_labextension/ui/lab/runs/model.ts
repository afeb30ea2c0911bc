// What can be said about a run before it is one: which files run, and what has been chosen.

import { IRunPlan, IRunRequest } from '../../console/data/client';

/** Return whether a file can run as a job. */
export function canRun(path: string): boolean {
  return /\.(ipynb|py|sh)$/i.test(path);
}

/** Return the value of each parameter, as it was typed or stands in the notebook. */
export function parameterRows(request: IRunRequest, plan: IRunPlan): [name: string, value: string][] {
  return Object.entries(plan.parameters).map(([name, value]) => [name, request.parameters?.[name] ?? value]);
}

/** Set a parameter; one that is as the notebook has it is not sent. */
export function withParameter(request: IRunRequest, plan: IRunPlan, name: string, value: string): IRunRequest {
  const typed = Object.entries({ ...request.parameters, [name]: value });
  return {
    ...request,
    parameters: Object.fromEntries(typed.filter(([name, value]) => plan.parameters[name] !== value))
  };
}

/** Read a whole number of at least `least`; `null` where there is none, which stays as it was. */
export function wholeNumber(typed: string, least: number): number | null {
  const number = Number(typed);
  return typed.trim() !== '' && Number.isInteger(number) && number >= least ? number : null;
}

/** Read gigabytes as MB. */
export function megabytes(typed: string): number | null {
  const number = Math.round(Number(typed) * 1024);
  return Number.isFinite(number) && number >= 100 ? number : null;
}

/** Write MB as gigabytes. */
export function gigabytes(megabytes: number): string {
  return String(Math.round((megabytes / 1024) * 100) / 100);
}
