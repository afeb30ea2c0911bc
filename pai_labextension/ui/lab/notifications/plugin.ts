// The plugin: JupyterLab, and if wanted the browser, tell of the ends of one's jobs, as its settings say.

import { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification, showErrorMessage } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { IJob } from '../../console/data/client';
import { ITranslation } from '../../console/host';
import { IJobsModel } from '../../console/data/jobs';
import { JobsToken } from '../host';
import { BrowserNotices } from './browser';
import { EndedNotices } from './ended';
import { isWanted, PLUGIN, read, translated } from './settings';

const COMMAND = 'pai:browser-notifications';

export const endedJobsPlugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Tells that a job has ended.',
  autoStart: true,
  requires: [JobsToken],
  optional: [ICommandPalette, ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    jobs: IJobsModel,
    palette: ICommandPalette | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('pai_labextension');
    const open = ({ name, username }: IJob) => void app.commands.execute('pai:open-job', { name, user: username });
    const list = () => void app.commands.execute('pai:show-jobs');
    const browser = new BrowserNotices(open, trans);
    let settings: ISettingRegistry.ISettings | null = null;
    const wanted = (job: IJob) => isWanted(read(settings), job);
    new EndedNotices(jobs, { open, list, wanted, inBrowser: browser }, Notification.manager, trans);
    if (registry === null) {
      return;
    }
    const follow = () => jobs.setHeardHidden(read(settings).browser && browser.permission === 'granted');
    registry.transform(PLUGIN, { fetch: plugin => ({ ...plugin, schema: translated(plugin.schema, trans) }) });
    void registry.load(PLUGIN).then(loaded => {
      settings = loaded;
      let before = read(loaded).browser;
      follow();
      loaded.changed.connect(() => {
        const now = read(loaded).browser;
        if (now && !before) {
          void allow(browser, trans).then(follow);
        }
        before = now;
        follow();
      });
      addCommand(app, palette, browser, loaded, trans);
    });
  }
};

/** Let the browser ask; where it does not, or the person has said no, say what to do. */
async function allow(browser: BrowserNotices, trans: ITranslation): Promise<void> {
  if ((await browser.ask()) === 'granted') {
    return;
  }
  const label = trans.__('Allow');
  // some browsers ask only after a click in the page itself, and settings are saved a while after theirs
  const actions = browser.permission === 'default' ? [{ label, callback: () => void allow(browser, trans) }] : [];
  Notification.warning(browser.obstacle(), { autoClose: false, actions });
}

function addCommand(
  { commands }: JupyterFrontEnd,
  palette: ICommandPalette | null,
  browser: BrowserNotices,
  settings: ISettingRegistry.ISettings,
  trans: ITranslation
): void {
  const isOn = () => read(settings).browser && browser.permission === 'granted';
  commands.addCommand(COMMAND, {
    label: trans.__('Notifications of the browser when jobs end'),
    describedBy: { args: { type: 'object', properties: {} } },
    isToggled: isOn,
    execute: async () => {
      const on = !isOn();
      if (on && (await browser.ask()) !== 'granted') {
        await showErrorMessage(trans.__('No notifications of the browser'), browser.obstacle());
        return;
      }
      await settings.set('browser', on);
    }
  });
  settings.changed.connect(() => commands.notifyCommandChanged(COMMAND));
  palette?.addItem({ command: COMMAND, category: trans.__('PAI') });
}
