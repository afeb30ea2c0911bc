// What each widget brings along itself (`_esm`): it asks the kernel for the console, once for all widgets of a page.

import type { Asset, IWidgetModel, View } from './host';

/** Names the console's content, so that widgets of another version take theirs. */
declare const PAI_HASH: string;

interface IConsole {
  initialize(model: IWidgetModel, asset: Asset): void;
  render(key: string, element: HTMLElement): View;
  forget(key: string): void;
}

const KEY = Symbol.for(`pai-console:${PAI_HASH}`);
const shared = globalThis as { [KEY]?: Promise<IConsole> };
/** ms until it is said that nobody answers. */
const PATIENCE = 15_000;

/** Make what asks a kernel for a file of ours. */
function assetsOf(model: IWidgetModel): Asset {
  return name =>
    new Promise((resolve, reject) => {
      const id = crypto.randomUUID();
      const hear = (content: { id?: string; kind?: string; found?: boolean }, buffers: DataView<ArrayBuffer>[]) => {
        if (content.id === id && content.kind === 'asset') {
          model.off('msg:custom', hear);
          clearTimeout(timer);
          if (content.found) {
            resolve(buffers[0]!);
          } else {
            reject(new Error(name));
          }
        }
      };
      // (the kernel may be busy for long: what comes later is still taken, by the next who asks)
      const timer = setTimeout(() => reject(new Error(name)), PATIENCE);
      model.on('msg:custom', hear);
      model.send({ id, kind: 'asset', name });
    });
}

async function load(asset: Asset): Promise<IConsole> {
  const url = URL.createObjectURL(new Blob([await asset('console')], { type: 'text/javascript' }));
  try {
    return (await import(/* webpackIgnore: true */ url)) as IConsole;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Return the console, asked for anew where it did not come. */
function consoleOf(asset: Asset): Promise<IConsole> {
  return (shared[KEY] ??= load(asset).catch((error: unknown) => {
    delete shared[KEY];
    throw error;
  }));
}

const begun = new Map<string, Promise<IConsole>>();

export default {
  initialize({ model }: { model: IWidgetModel }): () => void {
    const key = model.get('_key') as string;
    const asset = assetsOf(model);
    const begin = async () => {
      const found = await consoleOf(asset);
      found.initialize(model, asset);
      return found;
    };
    // nobody waits for it yet: what is drawn says what is missing
    begun.set(key, begin());
    begun.get(key)!.catch(() => undefined);
    return () => {
      void begun.get(key)?.then(found => found.forget(key));
      begun.delete(key);
    };
  },
  async render({ model, el }: { model: IWidgetModel; el: HTMLElement }): Promise<(() => void) | undefined> {
    const words = model.get('_options') as { loading: string; silent: string };
    el.textContent = words.loading;
    try {
      const key = model.get('_key') as string;
      const found = await begun.get(key)!;
      el.textContent = '';
      return found.render(key, el);
    } catch {
      el.textContent = words.silent;
      return undefined;
    }
  }
};
