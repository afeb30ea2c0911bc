// JSON from outside becomes a type here, and nowhere else: an answer is looked at before it is believed.

import { TranslationBundle } from '@jupyterlab/translation';
import * as v from 'valibot';

/** An answer is not what it should be; the message is for people. */
export class AnswerError extends Error {}

/** Read an answer; AnswerError where it is none of that schema. What the schema does not know is left out. */
export function parsed<Schema extends v.GenericSchema>(
  schema: Schema,
  answer: unknown,
  trans: TranslationBundle
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, answer);
  if (result.success) {
    return result.output;
  }
  const [issue] = result.issues;
  throw new AnswerError(
    trans.__(
      'The server’s answer cannot be read (%1). This page may be older or newer than the server: reload it, and if that does not help, tell an administrator.',
      [v.getDotPath(issue), issue.message].filter(Boolean).join(': ')
    )
  );
}

/** Read JSON; `undefined` where it is none, which no schema takes. */
export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
