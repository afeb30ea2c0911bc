// What the job editor is made from, as the notebook server tells it.

import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';

import { parsed } from '../answers';
import { ask } from '../api';
import { JobEditorInfo } from '../generated/types.gen';
import { vJobEditorInfo } from '../generated/valibot.gen';

/** Ask for it; rejects with an Error whose message is for people. */
export async function editorInfo(
  settings: ServerConnection.ISettings,
  language: string,
  trans: TranslationBundle
): Promise<JobEditorInfo> {
  return parsed(vJobEditorInfo, await ask(settings, language, 'GET', 'pai/job-editor'), trans);
}
