// What is drawn by React and has to know whether it is in view: only then it asks for anything.

import { ReactWidget } from '@jupyterlab/apputils';
import { Message } from '@lumino/messaging';

export abstract class ShownWidget extends ReactWidget {
  /** Note that it came into view, or went. */
  protected abstract setShown(shown: boolean): void;

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.setShown(true);
  }

  protected onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this.setShown(this.isVisible);
  }

  protected onBeforeHide(message: Message): void {
    super.onBeforeHide(message);
    this.setShown(false);
  }

  protected onBeforeDetach(message: Message): void {
    super.onBeforeDetach(message);
    this.setShown(false);
  }
}
