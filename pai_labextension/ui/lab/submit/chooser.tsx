// A dialog that asks how something is to be submitted, and says meanwhile what would come of it.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';

import { IProgress, ISubmitted } from '../../console/data/client';
import { Debouncer } from '../../console/data/store';
import { ITranslation } from '../../console/host';
import { send } from './send';

/** ms after the last key before it is asked what would come of it. */
const TYPING = 400;

/** What asks the server. Both reject with an Error whose message is for people. */
export interface ISubmitter<Request, Plan> {
  readonly plan: (request: Request) => Promise<Plan>;
  readonly submit: (
    request: Request,
    onProgress: (progress: IProgress) => void,
    signal: AbortSignal
  ) => Promise<ISubmitted>;
}

/** The body of the dialog: a request that the person changes, and the plan that belongs to it. */
export abstract class Chooser<Request, Plan> extends ReactWidget implements Dialog.IBodyWidget<Request> {
  /** @param problem - why the request was refused; empty: it was not submitted yet */
  constructor(
    protected request: Request,
    protected problem: string,
    private readonly submitter: ISubmitter<Request, Plan>,
    protected readonly trans: ITranslation
  ) {
    super();
    this.addClass('pai-Code');
    this.disposed.connect(() => this.looking.dispose());
    void this.look();
  }

  getValue(): Request {
    return this.request;
  }

  protected change(request: Request): void {
    this.request = request;
    this.changed?.(request);
    this.update();
    this.looking.invoke();
  }

  /** Hears that something else is asked for. */
  changed?: (request: Request) => void;

  /** Fill in what the plan says of a request that leaves it open. */
  protected filledIn?(request: Request, plan: Plan): Request;

  private async look(): Promise<void> {
    const asked = this.request;
    try {
      const plan = await this.submitter.plan(asked);
      if (asked === this.request) {
        this.plan = plan;
        this.request = this.filledIn?.(asked, plan) ?? asked;
        this.problem = this.first ? this.problem : '';
      }
    } catch (error) {
      if (asked === this.request) {
        this.problem = (error as Error).message;
      }
    }
    this.first = false;
    this.update();
  }

  /** What would come of the request; `null`: it is not known yet. */
  protected plan: Plan | null = null;
  private readonly looking = new Debouncer(() => this.look(), TYPING);
  private first = true;
}

/**
 * Ask, and submit, until it is taken or given up (`null`).
 *
 * @param options - `body` makes what is asked, beside what was wrong the last time; `accept`: what the button says
 * that submits a request; `focus`: what has the focus
 */
export async function askAndSubmit<Request, Plan>(options: {
  request: Request;
  title: string;
  accept: (request: Request) => string;
  focus?: string;
  body: (request: Request, problem: string) => Chooser<Request, Plan>;
  submitter: ISubmitter<Request, Plan>;
  trans: ITranslation;
}): Promise<{ submitted: ISubmitted; request: Request } | null> {
  const { title, accept, focus, body, submitter, trans } = options;
  let { request } = options;
  let problem = '';
  for (;;) {
    const chooser = body(request, problem);
    chooser.changed = changed => nameButton(chooser.node, accept(changed));
    const answer = await new Dialog<Request>({
      title,
      body: chooser,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: accept(request) })],
      ...(focus === undefined ? {} : { focusNodeSelector: focus })
    }).launch();
    if (!answer.button.accept || answer.value === null) {
      return null;
    }
    const chosen = answer.value;
    const result = await send((tell, signal) => submitter.submit(chosen, tell, signal), trans);
    if (typeof result !== 'string') {
      return result && { submitted: result, request: chosen };
    }
    // what was typed stays, beside what was wrong with it
    [request, problem] = [chosen, result];
  }
}

/** Say something else on the button of a dialog that is open: its buttons have one text each by themselves. */
function nameButton(body: HTMLElement, label: string): void {
  const shown = body.closest('.jp-Dialog')?.querySelector('.jp-mod-accept .jp-Dialog-buttonLabel');
  if (shown) {
    shown.textContent = shown.ariaLabel = label;
  }
}
