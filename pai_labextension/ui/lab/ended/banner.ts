// A line above everything else. JupyterLab loads what shows its notifications when the first one comes: from a server
// that does not answer then.

import { Widget } from '@lumino/widgets';

/** Shows one sentence at a time. */
export class Banner extends Widget {
  constructor() {
    super();
    this.addClass('pai-Banner');
    this.node.setAttribute('role', 'status');
  }

  /** Show a sentence in place of what is shown. */
  say(message: string): void {
    if (this.node.textContent !== message) {
      this.node.textContent = message;
    }
    if (!this.isAttached) {
      Widget.attach(this, document.body);
    }
  }

  /** Take it away. */
  hush(): void {
    if (this.isAttached) {
      Widget.detach(this);
    }
  }
}
