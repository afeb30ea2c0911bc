// Something that is asked again and again while it is drawn.

import * as React from 'react';

import { Polled } from '../polled';

/** What was answered last, and why the last question had no answer. */
export interface IAnswer<Answer> {
  readonly answer: Answer | null;
  readonly error: string;
}

/**
 * Ask again and again as long as the component is there and in view.
 *
 * @param name - of what is asked for, for JupyterLab's own messages
 * @param interval - ms between two questions
 */
export function usePolled<Answer>(
  name: string,
  question: () => Promise<Answer>,
  interval: number,
  isShown: boolean
): IAnswer<Answer> {
  const [answer, setAnswer] = React.useState<IAnswer<Answer>>({ answer: null, error: '' });
  const asked = React.useRef(question);
  React.useEffect(() => {
    asked.current = question;
  });
  React.useEffect(() => {
    if (!isShown) {
      return undefined;
    }
    const polled = new Polled(name, () => asked.current(), interval);
    polled.changed.connect(() =>
      setAnswer(before => ({ answer: polled.answer ?? before.answer, error: polled.error }))
    );
    polled.setShown(true);
    return () => polled.dispose();
  }, [name, interval, isShown]);
  return answer;
}
