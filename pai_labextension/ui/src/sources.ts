// What stands in the cells that we open.

/** Show the job form. */
export const FORM_CELL = 'from pai_labextension import JobForm\n\nJobForm()';

/** Show what a job does; a JSON text is one of Python, too. */
export function monitorCell(name: string, user: string): string {
  return `from pai_labextension import JobMonitor\n\nJobMonitor(${JSON.stringify(name)}, ${JSON.stringify(user)})`;
}
