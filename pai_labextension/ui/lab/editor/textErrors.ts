// What is wrong with a text that is no JSON, and with a job that the form cannot show, in words.

import { ParseError, printParseErrorCode } from 'jsonc-parser';

import { ITranslation } from '../../console/host';
import { isListOfObjects, isObject, valueAt } from './text';

/** Name line and column of the first place of a text that is no JSON, and what is wrong there. */
export function textProblem(text: string, error: ParseError, trans: ITranslation): string {
  const before = text.slice(0, error.offset).split('\n');
  const [line, column] = [before.length, before.at(-1)!.length + 1];
  return trans.__('Line %1, column %2: %3', line, column, textErrorWords(error, trans));
}

/** Return why the form has no fields for what a text says; `null` where it has. */
export function shapeProblem(config: unknown, trans: ITranslation): string | null {
  if (!isObject(config)) {
    return trans.__('A job is a JSON object: the text has to begin with {.');
  }
  for (const name of ['jobEnvs', 'extras']) {
    if (!isObject(config[name] ?? {})) {
      return trans.__('%1 has to be an object; put it right in the text.', name);
    }
  }
  const roles = config.taskRoles ?? [];
  const wrong = !isListOfObjects(roles)
    ? 'taskRoles'
    : roles.every(role => isListOfObjects(valueAt(role, ['portList']) ?? []))
      ? null
      : 'portList';
  return wrong && trans.__('%1 has to be a list of objects; put it right in the text.', wrong);
}

/** Say what is wrong at a place of a text that is no JSON. */
export function textErrorWords(error: ParseError, trans: ITranslation): string {
  switch (printParseErrorCode(error.error)) {
    case 'CommaExpected':
      return trans.__('a comma is missing before this');
    case 'ColonExpected':
      return trans.__('a colon is missing before this');
    case 'PropertyNameExpected':
      return trans.__('a name in double quotes is missing here, or a comma before it is too many');
    case 'ValueExpected':
      return trans.__('a value is missing here, or a comma before it is too many');
    case 'CloseBraceExpected':
      return trans.__('a closing } is missing');
    case 'CloseBracketExpected':
      return trans.__('a closing ] is missing');
    case 'EndOfFileExpected':
      return trans.__('the job ends before this');
    case 'UnexpectedEndOfString':
      return trans.__('the closing quote of this text is missing');
    case 'UnexpectedEndOfComment':
      return trans.__('the end of this comment is missing');
    case 'InvalidUnicode':
    case 'InvalidEscapeCharacter':
      return trans.__('no such character can stand behind a backslash in a text');
    default:
      return trans.__('this is no JSON');
  }
}
