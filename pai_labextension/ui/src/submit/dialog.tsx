// What goes along with a job: patterns, the files they choose, and how far the upload is.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Debouncer } from '@lumino/polling';
import * as React from 'react';

import { bytesText } from '../storage/quantities';
import { CodeClient, ISubmitRequest, IPlan, IProgress, ISubmitted, patterns } from './client';

/** ms after the last key before the files are looked for. */
const TYPING = 400;
/** Files that are named; of more it is told how many. */
const NAMED = 200;

/**
 * Ask what goes along with a job, and submit it. Resolves with the job, or `null` when it was given up.
 *
 * @param path - of the job file, below what the file browser shows
 */
export async function submitWithCode(
  path: string,
  client: CodeClient,
  trans: TranslationBundle
): Promise<ISubmitted | null> {
  let problem = '';
  let request: ISubmitRequest = { path };
  for (;;) {
    const chooser = new CodeChooser(request, problem, client, trans);
    const answer = await new Dialog({
      title: trans.__('Submit to PAI with this folder’s code'),
      body: chooser,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Submit') })]
    }).launch();
    if (!answer.button.accept) {
      return null;
    }
    request = chooser.getValue();
    const result = await send(request, client, trans);
    if (typeof result !== 'string') {
      return result;
    }
    // what was typed stays, beside what was wrong with it
    problem = result;
  }
}

/** Submit behind a dialog that tells how far it is; gives why not as a string. */
async function send(
  request: ISubmitRequest,
  client: CodeClient,
  trans: TranslationBundle
): Promise<ISubmitted | null | string> {
  const controller = new AbortController();
  const view = new ProgressView(trans);
  const dialog = new Dialog({
    title: trans.__('Submitting …'),
    body: view,
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') })]
  });
  const closed = dialog.launch().then(() => controller.abort());
  try {
    return await client.submit(request, progress => view.tell(progress), controller.signal);
  } catch (error) {
    return controller.signal.aborted ? null : (error as Error).message;
  } finally {
    dialog.dispose();
    void closed.catch(() => undefined);
  }
}

class CodeChooser extends ReactWidget implements Dialog.IBodyWidget<ISubmitRequest> {
  constructor(
    request: ISubmitRequest,
    private problem: string,
    private readonly client: CodeClient,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('pai-Code');
    this.request = request;
    this.disposed.connect(() => this.looking.dispose());
    void this.look();
  }

  getValue(): ISubmitRequest {
    return this.request;
  }

  protected render(): React.ReactElement {
    const { request, plan, problem, trans } = this;
    return (
      <>
        <PatternsInput
          label={trans.__('Files that go along (one pattern in a line)')}
          value={request.include ?? plan?.include ?? []}
          onChange={include => this.change({ include })}
        />
        <PatternsInput
          label={trans.__('Except')}
          value={request.exclude ?? plan?.exclude ?? []}
          onChange={exclude => this.change({ exclude })}
        />
        <label className="pai-Code-check">
          <input
            type="checkbox"
            checked={request.generateName ?? plan?.generateName ?? false}
            onChange={event => this.change({ generateName: event.target.checked })}
          />
          {trans.__('Append eight characters to the name, so that it is new')}
        </label>
        {problem ? (
          <p role="alert" className="pai-Reason">
            {problem}
          </p>
        ) : (
          <Files plan={plan} trans={trans} />
        )}
      </>
    );
  }

  private change(changes: Partial<ISubmitRequest>): void {
    this.request = { ...this.request, ...changes };
    this.update();
    void this.looking.invoke();
  }

  private async look(): Promise<void> {
    const asked = this.request;
    try {
      const plan = await this.client.plan(asked);
      if (asked === this.request) {
        const { include, exclude, generateName } = plan;
        this.plan = plan;
        this.request = { include, exclude, generateName, ...asked };
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

  private readonly looking = new Debouncer(() => this.look(), TYPING);
  private request: ISubmitRequest;
  private plan: IPlan | null = null;
  private first = true;
}

function PatternsInput(props: {
  label: string;
  value: readonly string[];
  onChange: (patterns: string[]) => void;
}): React.ReactElement {
  const [typed, setTyped] = React.useState<string | null>(null);
  return (
    <label>
      {props.label}
      <textarea
        className="jp-mod-styled"
        rows={3}
        spellCheck={false}
        value={typed ?? props.value.join('\n')}
        onChange={event => {
          setTyped(event.target.value);
          props.onChange(patterns(event.target.value));
        }}
        onKeyDown={event => {
          if (event.key === 'Enter') {
            event.stopPropagation(); // a new line, not the dialog's button
          }
        }}
      />
    </label>
  );
}

function Files({ plan, trans }: { plan: IPlan | null; trans: TranslationBundle }): React.ReactElement {
  if (plan === null) {
    return <p role="status">{trans.__('Looking for the files …')}</p>;
  }
  const length = plan.files.reduce((sum, file) => sum + file.length, 0);
  const more = plan.files.length - NAMED;
  return (
    <>
      <p role="status">{trans.__('Files: %1, %2 in all, to %3', plan.files.length, bytesText(length), plan.folder)}</p>
      <ul className="pai-Code-files" tabIndex={0} aria-label={trans.__('Files that go along')}>
        {plan.files.slice(0, NAMED).map(({ name, length }) => (
          <li key={name}>
            <span title={name}>{name}</span>
            <span>{bytesText(length)}</span>
          </li>
        ))}
        {more > 0 && <li>{trans.__('and %1 more', more)}</li>}
      </ul>
    </>
  );
}

class ProgressView extends ReactWidget {
  constructor(private readonly trans: TranslationBundle) {
    super();
    this.addClass('pai-Code');
  }

  tell(progress: IProgress): void {
    this.progress = progress;
    this.update();
  }

  protected render(): React.ReactElement {
    const { progress, trans } = this;
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

  private progress: IProgress | null = null;
}
