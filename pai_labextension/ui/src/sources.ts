// What stands in the cells that we open.

/** Show the job form. */
export const FORM_CELL = 'from pai_labextension import JobForm\n\nJobForm()';
