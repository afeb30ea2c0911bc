// JSON from outside becomes a type here, and nowhere else: an answer is looked at before it is believed.

import * as v from 'valibot';

import { vRefusal } from '../generated/valibot.gen';
import { ITranslation } from '../host';

/** The code of not having reached the server. */
export const UNREACHABLE = 'ServerUnreachable';

/**
 * The server, or the way to it, refused; the message is for people.
 *
 * `code` is the contract's name for the reason, or WebHDFS's; `status` is 0 where nobody answered.
 */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** An answer is not what it should be; the message is for people. */
export class AnswerError extends Error {}

/** Return what an error says to people. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Read an answer; AnswerError where it is none of that schema. What the schema does not know is left out. */
export function parsed<Schema extends v.GenericSchema>(
  schema: Schema,
  answer: unknown,
  trans: ITranslation
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

/** Hand an answer on; `ApiError` where it is a refusal. */
export async function accepted(response: Response): Promise<Response> {
  if (response.ok) {
    return response;
  }
  const answer = json(await response.text());
  const { code, message, RemoteException } = v.is(vRefusal, answer) ? answer : {};
  const said = RemoteException ?? { exception: code, message };
  throw new ApiError(
    response.status,
    said.exception ?? 'UnknownError',
    said.message ?? `${response.status} ${response.statusText}`.trim()
  );
}
