// What goes along with a job: patterns, the files they choose, and how far the upload is.

import { Dialog, ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { Debouncer } from '@lumino/polling';
import * as React from 'react';

import { bytesText } from '../storage/quantities';
import { CodeDoor, IErrand, IPlan, IProgress, ISubmitted, patterns } from './door';

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
  door: CodeDoor,
  trans: TranslationBundle
): Promise<ISubmitted | null> {
  let problem = '';
  let errand: IErrand = { path };
  for (;;) {
    const chooser = new CodeChooser(errand, problem, door, trans);
    const answer = await new Dialog({
      title: trans.__('Submit to PAI with this folder’s code'),
      body: chooser,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.okButton({ label: trans.__('Submit') })]
    }).launch();
    if (!answer.button.accept) {
      return null;
    }
    errand = chooser.getValue();
    const result = await send(errand, door, trans);
    if (typeof result !== 'string') {
      return result;
    }
    // what was typed stays, beside what was wrong with it
    problem = result;
  }
}

/** Submit behind a dialog that tells how far it is; gives why not as a string. */
async function send(errand: IErrand, door: CodeDoor, trans: TranslationBundle): Promise<ISubmitted | null | string> {
  const controller = new AbortController();
  const view = new ProgressView(trans);
  const dialog = new Dialog({
    title: trans.__('Submitting …'),
    body: view,
    buttons: [Dialog.cancelButton({ label: trans.__('Cancel') })]
  });
  const closed = dialog.launch().then(() => controller.abort());
  try {
    return await door.submit(errand, progress => view.tell(progress), controller.signal);
  } catch (error) {
    return controller.signal.aborted ? null : (error as Error).message;
  } finally {
    dialog.dispose();
    void closed.catch(() => undefined);
  }
}

class CodeChooser extends ReactWidget implements Dialog.IBodyWidget<IErrand> {
  constructor(
    errand: IErrand,
    private problem: string,
    private readonly door: CodeDoor,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('pai-Code');
    this.errand = errand;
    this.disposed.connect(() => this.looking.dispose());
    void this.look();
  }

  getValue(): IErrand {
    return this.errand;
  }

  protected render(): React.ReactElement {
    const { errand, plan, problem, trans } = this;
    return (
      <>
        <PatternsInput
          label={trans.__('Files that go along (one pattern in a line)')}
          value={errand.include ?? plan?.include ?? []}
          onChange={include => this.change({ include })}
        />
        <PatternsInput
          label={trans.__('Except')}
          value={errand.exclude ?? plan?.exclude ?? []}
          onChange={exclude => this.change({ exclude })}
        />
        <label className="pai-Code-check">
          <input
            type="checkbox"
            checked={errand.generateName ?? plan?.generateName ?? false}
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

  private change(changes: Partial<IErrand>): void {
    this.errand = { ...this.errand, ...changes };
    this.update();
    void this.looking.invoke();
  }

  private async look(): Promise<void> {
    const asked = this.errand;
    try {
      const plan = await this.door.plan(asked);
      if (asked === this.errand) {
        const { include, exclude, generateName } = plan;
        this.plan = plan;
        this.errand = { include, exclude, generateName, ...asked };
        this.problem = this.first ? this.problem : '';
      }
    } catch (error) {
      if (asked === this.errand) {
        this.problem = (error as Error).message;
      }
    }
    this.first = false;
    this.update();
  }

  private readonly looking = new Debouncer(() => this.look(), TYPING);
  private errand: IErrand;
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
