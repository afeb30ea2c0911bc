// Parts of the console as widgets of JupyterLab's.

import { ReactWidget } from '@jupyterlab/apputils';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { HostProvider, IHost, ShownProvider } from '../console/host';

/** Return a component that is loaded when it is drawn for the first time: JupyterLab starts without it. */
export function late<P extends object>(
  load: () => Promise<React.FunctionComponent<P>>
): React.LazyExoticComponent<React.FunctionComponent<P>> {
  return React.lazy(async () => ({ default: await load() }));
}

/** Draws a part of the console, and tells it whether it is in view. */
export class Mount extends ReactWidget {
  constructor(
    private readonly host: IHost,
    private readonly content: () => React.ReactElement
  ) {
    super();
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.update();
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.update();
  }

  protected onAfterHide(message: Message): void {
    super.onAfterHide(message);
    // (JupyterLab draws nothing that is hidden)
    this.onUpdateRequest(message);
  }

  protected render(): React.ReactElement {
    return (
      <HostProvider value={this.host}>
        <ShownProvider value={this.isVisible}>
          <React.Suspense fallback={null}>{this.content()}</React.Suspense>
        </ShownProvider>
      </HostProvider>
    );
  }
}
