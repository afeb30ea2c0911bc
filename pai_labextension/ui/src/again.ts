// Asks at once, and not at the end of a long pause, when there is an answer again or somebody looks again.

import type { Poll } from '@lumino/polling';

/** The event of the window when the notebook server answers again. */
const ANSWERED = 'pai-server-answers';
/** The phases in which a poll waits because nobody answered, or nobody looked. */
const WAITING: readonly string[] = ['rejected', 'standby'];

/** Tell all that wait that the notebook server answers again. */
export function tellAnswered(): void {
  window.dispatchEvent(new Event(ANSWERED));
}

/** Let a poll that waits ask at once when the server answers, the network is back, or the page is looked at again. */
export function askAgain(poll: Poll): void {
  const ask = () => {
    if (WAITING.includes(poll.state.phase) && document.visibilityState !== 'hidden') {
      void poll.refresh();
    }
  };
  const places: [EventTarget, string][] = [
    [window, ANSWERED],
    [window, 'online'],
    [document, 'visibilitychange'],
    [document, 'resume'] // of a page that the browser has put to sleep
  ];
  places.forEach(([target, event]) => target.addEventListener(event, ask));
  poll.disposed.connect(() => places.forEach(([target, event]) => target.removeEventListener(event, ask)));
}
