// Dialogs that ask how something is to be submitted, say meanwhile what would come of it, and submit it.

import * as React from 'react';

import { IProgress, ISubmitted } from '../data/client';
import { messageOf } from '../data/errors';
import { OnSignal, Signal } from '../data/store';
import { HostProvider, IHost, useHost } from '../host';
import { TextButton } from '../kit/button';
import { DialogButtons, openDialog } from '../kit/dialog';
import { bytesText } from '../storage/quantities';

/** ms after the last key before it is asked what would come of it. */
const TYPING = 400;

/** What is asked for, what would come of it (`null`: it is not known yet), and what is wrong with it. */
export interface IAsked<Request, Plan> {
  readonly request: Request;
  readonly plan: Plan | null;
  readonly problem: string;
  readonly change: (request: Request) => void;
}

/** What is asked. `plan` and `submit` ask the server, and reject with an Error whose message is for people. */
export interface ISubmitQuestion<Request, Plan> {
  readonly title: string;
  readonly className: string;
  /** What the button says that submits a request. */
  readonly accept: (request: Request) => string;
  readonly fields: (asked: IAsked<Request, Plan>) => React.ReactElement;
  readonly plan: (request: Request) => Promise<Plan>;
  /** Fill in what the plan says of a request that leaves it open. */
  readonly filled: (request: Request, plan: Plan) => Request;
  readonly submit: (
    request: Request,
    onProgress: (progress: IProgress) => void,
    signal: AbortSignal
  ) => Promise<ISubmitted>;
}

/** Ask, and submit, until it is taken or given up (`null`). */
export async function askAndSubmit<Request, Plan>(
  host: IHost,
  first: Request,
  question: ISubmitQuestion<Request, Plan>
): Promise<{ submitted: ISubmitted; request: Request } | null> {
  const { title, submit } = question;
  let request: Request | null = first;
  let problem = '';
  for (;;) {
    const begin = { request, problem };
    request = await openDialog<Request | null>(host.root, title, answer => (
      <HostProvider value={host}>
        <Chooser question={question} {...begin} answer={answer} />
      </HostProvider>
    ));
    if (request === null) {
      return null;
    }
    const chosen = request;
    const result = await send(host, (tell, signal) => submit(chosen, tell, signal));
    if (typeof result !== 'string') {
      return result && { submitted: result, request };
    }
    // what was typed stays, beside what was wrong with it
    problem = result;
  }
}

function Chooser<Request, Plan>(props: {
  question: ISubmitQuestion<Request, Plan>;
  request: Request;
  /** Why the request was refused; empty: it was not submitted yet. */
  problem: string;
  answer: (request: Request | null) => void;
}): React.ReactElement {
  const { question, answer } = props;
  const { trans } = useHost();
  const [typed, setTyped] = React.useState(props.request);
  const [plan, setPlan] = React.useState<Plan | null>(null);
  const [problem, setProblem] = React.useState(props.problem);
  const isFirst = React.useRef(true);
  React.useEffect(() => {
    let isCurrent = true;
    const look = async (keepsProblem: boolean) => {
      try {
        const found = await question.plan(typed);
        if (isCurrent) {
          setPlan(found);
          setProblem(before => (keepsProblem ? before : ''));
        }
      } catch (error) {
        if (isCurrent) {
          setProblem(messageOf(error));
        }
      }
    };
    const timer = setTimeout(() => void look(isFirst.current), isFirst.current ? 0 : TYPING);
    return () => {
      isCurrent = false;
      isFirst.current = false;
      clearTimeout(timer);
    };
  }, [question, typed]);
  const request = plan === null ? typed : question.filled(typed, plan);
  return (
    <form
      className={question.className}
      noValidate
      onSubmit={event => {
        event.preventDefault();
        answer(request);
      }}
    >
      {question.fields({ request, plan, problem, change: setTyped })}
      <DialogButtons accept={question.accept(request)} cancel={trans.__('Cancel')} onCancel={() => answer(null)} />
    </form>
  );
}

/** Submit behind a dialog that tells how far it is; gives why not as a string. */
async function send(
  host: IHost,
  submit: (tell: (progress: IProgress) => void, signal: AbortSignal) => Promise<ISubmitted>
): Promise<ISubmitted | null | string> {
  const { root, trans } = host;
  const controller = new AbortController();
  const told = new Signal();
  let progress: IProgress | null = null;
  let end = () => undefined as void;
  const closed = openDialog<void>(
    root,
    trans.__('Submitting …'),
    answer => (
      <HostProvider value={host}>
        <div className="pai-Code">
          <OnSignal signal={told}>{() => <Progress progress={progress} />}</OnSignal>
        </div>
        <div className="pai-Dialog-buttons">
          <TextButton onClick={() => answer()}>{trans.__('Cancel')}</TextButton>
        </div>
      </HostProvider>
    ),
    given => (end = given)
  );
  void closed.then(() => controller.abort());
  try {
    return await submit(now => {
      progress = now;
      told.emit();
    }, controller.signal);
  } catch (error) {
    return controller.signal.aborted ? null : messageOf(error);
  } finally {
    end();
  }
}

function Progress({ progress }: { progress: IProgress | null }): React.ReactElement {
  const { trans } = useHost();
  if (progress === null) {
    return <progress aria-label={trans.__('Upload of the code')} />;
  }
  const { files, filesTotal, bytes, bytesTotal } = progress;
  return (
    <>
      <progress aria-label={trans.__('Upload of the code')} value={bytesTotal ? bytes : 1} max={bytesTotal || 1} />
      <p role="status">{trans.__('Files: %1 of %2, %3', files, filesTotal, bytesText(bytes))}</p>
    </>
  );
}

/** What is wrong with what is asked for. */
export function Reason({ text }: { text: string }): React.ReactElement {
  return (
    <p role="alert" className="pai-Reason">
      {text}
    </p>
  );
}
