// What a person wants to be told of, as JupyterLab's settings have it, and their words in the person's language.

import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { TranslationBundle } from '@jupyterlab/translation';
import { PartialJSONObject } from '@lumino/coreutils';

import { DEFAULTS, INoticeSettings } from '../console/jobs/ended';

/** The plugin whose settings these are: its schema is `schema/ended-jobs.json`. */
export const PLUGIN = 'pai-labextension:ended-jobs';

/** Return the settings, checked by the registry against the schema; the defaults where there is none. */
export function read(settings: ISettingRegistry.ISettings | null): INoticeSettings {
  return { ...DEFAULTS, ...(settings?.composite as Partial<INoticeSettings> | undefined) };
}

/** Return a schema with its titles and descriptions translated: JupyterLab itself looks in language packs only. */
export function translated(schema: ISettingRegistry.ISchema, trans: TranslationBundle): ISettingRegistry.ISchema {
  return inLanguage(schema, trans) as unknown as ISettingRegistry.ISchema;
}

function inLanguage(part: PartialJSONObject, trans: TranslationBundle): PartialJSONObject {
  const of = (key: string, value: unknown): unknown => {
    if ((key === 'title' || key === 'description') && typeof value === 'string') {
      return trans.gettext(value);
    }
    if (Array.isArray(value)) {
      return value.map(each => of('', each));
    }
    return typeof value === 'object' && value !== null ? inLanguage(value as PartialJSONObject, trans) : value;
  };
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, of(key, value)])) as PartialJSONObject;
}
