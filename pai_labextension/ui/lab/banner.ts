// A line above everything else. JupyterLab loads what shows its notifications when the first one comes: from a server
// that does not answer then.

/** Shows one sentence at a time. */
export class Banner {
  constructor() {
    this.line.className = 'pai-Banner';
    this.line.setAttribute('role', 'status');
  }

  /** Show a sentence in place of what is shown; `null`: none. */
  say(message: string | null): void {
    if (message === null) {
      this.line.remove();
      return;
    }
    if (this.line.textContent !== message) {
      this.line.textContent = message;
    }
    if (!this.line.isConnected) {
      document.body.append(this.line);
    }
  }

  private readonly line = document.createElement('div');
}
