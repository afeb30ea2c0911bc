// The job editor: head, form and JSON side by side (tabs where that is too narrow), and Submit beneath.

import * as React from 'react';
import { flushSync } from 'react-dom';

import { IJobName } from '../data/client';
import { useModel } from '../data/store';
import { IHost, useHost } from '../host';
import { TextButton } from '../kit/button';
import { showError } from '../kit/dialog';
import { inputId } from './fields';
import { JobForm } from './form';
import { JobEditorModel } from './model';
import { SubmitBar } from './submit';
import { Path, textOf, uniqueName } from './text';

/** px below which form and JSON have no room beside each other. */
const NARROW = 720;
/** Bytes of the longest text that the scheduler takes. */
const LONGEST = 8 * 1024 * 1024;
/** Of the width that form and JSON share: what the form has at first, at least and at most, and by an arrow key more. */
const [SHARE, LEAST, MOST, STEP] = [0.6, 0.2, 0.8, 0.05];

type Side = 'form' | 'json';

/** The code editor beside the form. */
export interface ICodePane {
  /** Be in an element, until the function that comes back is called. */
  attach(element: HTMLElement): () => void;
  /** Put the cursor where something is in the text. */
  goTo(path: Path): void;
}

interface IJobEditorProps {
  model: JobEditorModel;
  code: ICodePane;
  /** `null`: it is saved in another way. */
  save: (() => void) | null;
  /** Submit with the code of a folder that is asked for (`null`: it was given up); `null`: there are no folders. */
  submitWithCode: ((job: Record<string, unknown>) => Promise<IJobName | null>) | null;
  /** Whether every job of this editor is submitted in that way. */
  onlyWithCode?: boolean;
  onSubmitted: () => void;
  /** Begin anew, where what is typed is kept until then. */
  discard?: () => void;
}

export function JobEditor(props: IJobEditorProps): React.ReactElement {
  const { model, code, save, submitWithCode, onlyWithCode = false, onSubmitted, discard } = props;
  const host = useHost();
  const id = React.useId();
  const root = React.useRef<HTMLDivElement>(null);
  const pane = React.useRef<HTMLDivElement>(null);
  const isNarrow = useNarrow(root);
  const [side, setSide] = React.useState<Side>('form');
  const [share, setShare] = React.useState(SHARE);
  useModel(model);
  React.useLayoutEffect(() => code.attach(pane.current!), [code]);
  React.useLayoutEffect(
    () =>
      model.wanted.connect(path => {
        const input = inputOf(root.current!, id, path);
        flushSync(() => setSide(input ? 'form' : 'json')); // what is hidden takes no focus
        if (input) {
          input.focus();
        } else {
          code.goTo(path);
        }
      }),
    [model, code, id]
  );
  const submitted = (job: IJobName) => {
    onSubmitted();
    host.places.open({ page: 'job', job });
  };
  const ofSide = (one: Side) => ({
    id: `${id}-${one}`,
    ...(isNarrow ? { hidden: side !== one, role: 'tabpanel', 'aria-labelledby': `${id}-${one}-tab` } : {})
  });
  return (
    <div className="pai-JobEditor" ref={root} tabIndex={-1} {...listeners(model, host)}>
      <Head {...{ model, save, discard }}>{isNarrow && <Tabs side={side} id={id} show={setSide} />}</Head>
      <div
        className="pai-JobSides"
        style={isNarrow ? {} : { gridTemplateColumns: `minmax(0, ${share}fr) auto minmax(0, ${1 - share}fr)` }}
      >
        <div className="pai-JobForm" {...ofSide('form')}>
          <JobForm {...{ model, id }} hasFolders={submitWithCode !== null} />
        </div>
        {!isNarrow && <Divider share={share} onMove={setShare} />}
        <div className="pai-JobCode" ref={pane} {...ofSide('json')} />
      </div>
      <SubmitBar
        model={model}
        submit={() => void submit(model, submitted)}
        onlyWithCode={onlyWithCode}
        submitWithCode={submitWithCode && (() => void submitCode(model, host, submitWithCode, submitted))}
      />
    </div>
  );
}

/** Return whether there is no room for two sides in an element. */
function useNarrow(element: React.RefObject<HTMLElement>): boolean {
  const [isNarrow, setNarrow] = React.useState(false);
  React.useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const { width } = entry!.contentRect;
      if (width > 0) {
        setNarrow(width < NARROW);
      }
    });
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, [element]);
  return isNarrow;
}

/** Return the input of a field, or that of the list or object which it is a part of. */
function inputOf(root: HTMLElement, id: string, path: Path): HTMLElement | null {
  for (let length = path.length; length > 0; length -= 1) {
    // (a page, or the shadow root in which the editor is)
    const within = root.getRootNode() as Document | ShadowRoot;
    const input = within.getElementById(inputId(id, path.slice(0, length)));
    if (input) {
      return input;
    }
  }
  return null;
}

/** Jobs are dropped anywhere, and pasted where there is nothing to type. */
function listeners(model: JobEditorModel, host: IHost): React.HTMLAttributes<HTMLElement> {
  const onFile = (event: React.DragEvent) => {
    const { files, types } = event.dataTransfer;
    if (types.includes('Files')) {
      event.preventDefault();
      event.stopPropagation();
      if (event.type === 'drop' && files[0]) {
        void importFile(files[0], model, host);
      }
    }
  };
  return {
    onDragOver: onFile,
    onDrop: onFile,
    onPaste: event => {
      // (the code editor may be in a root of its own)
      const typed = event.nativeEvent
        .composedPath()
        .some(one => one instanceof Element && one.matches('input, textarea, .cm-editor'));
      const text = typed ? '' : event.clipboardData.getData('text/plain');
      if (text.trim().startsWith('{')) {
        event.preventDefault();
        model.replace(text, host.trans.__('Pasted.'));
      }
    }
  };
}

async function importFile(file: File, model: JobEditorModel, host: IHost): Promise<void> {
  await importText(file.name, model, host, async () => {
    if (file.size > LONGEST) {
      throw new Error(host.trans.__('This file is larger than 8 MiB, which no job is.'));
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  });
}

/** Take what is in a file, or say why not. */
export async function importText(
  name: string,
  model: JobEditorModel,
  host: IHost,
  read: () => Promise<string>
): Promise<void> {
  const { trans } = host;
  try {
    model.replace(await read(), trans.__('Imported: %1', name));
  } catch (error) {
    const isNoText = error instanceof TypeError;
    const message = trans.__('This file is no text in UTF-8; save it as UTF-8 and choose it again.');
    await showError(host, trans.__('“%1” was not imported', name), isNoText ? message : error);
  }
}

/** Go to what keeps the job from being submitted; tell whether something does. */
function isHeldBack(model: JobEditorModel): boolean {
  const place = model.needed[0] ?? model.mistakes[0]?.path;
  if (place) {
    model.wanted.emit(place);
  }
  return place !== undefined;
}

async function submit(model: JobEditorModel, submitted: (job: IJobName) => void): Promise<void> {
  if (isHeldBack(model)) {
    return;
  }
  const job = await model.submit();
  if (job) {
    submitted(job);
  } else if (model.mistakes[0]) {
    model.wanted.emit(model.mistakes[0].path);
  }
}

async function submitCode(
  model: JobEditorModel,
  host: IHost,
  submitWithCode: (job: Record<string, unknown>) => Promise<IJobName | null>,
  submitted: (job: IJobName) => void
): Promise<void> {
  if (isHeldBack(model)) {
    return;
  }
  const { text, config } = model;
  try {
    const job = await submitWithCode(config);
    if (job) {
      model.setSubmitted(text, job.name);
      submitted(job);
    }
  } catch (error) {
    await showError(host, host.trans.__('The job was not submitted'), error);
  }
}

interface IHeadProps {
  model: JobEditorModel;
  save: (() => void) | null;
  discard: (() => void) | undefined;
  children: React.ReactNode;
}

/** Above form and JSON: templates and files to begin with, where it is saved. */
function Head({ model, save, discard, children }: IHeadProps): React.ReactElement {
  const host = useHost();
  const { trans } = host;
  const { templates } = model.info;
  const file = React.useRef<HTMLInputElement>(null);
  const take = (name: string) => {
    const { config, description } = templates.find(template => template.name === name)!;
    model.replace(textOf({ ...config, jobName: uniqueName(name) }), description);
  };
  return (
    <div className="pai-JobHead">
      <div className="pai-JobHead-line">
        <select
          className="pai-Input"
          aria-label={trans.__('Begin with a template')}
          value=""
          onChange={({ target }) => take(target.value)}
        >
          <option value="" disabled>
            {trans.__('Begin with a template …')}
          </option>
          {templates.map(({ name, title, description }) => (
            <option key={name} value={name} title={description}>
              {title}
            </option>
          ))}
        </select>
        <TextButton icon="upload" title={trans.__('Import a file …')} onClick={() => file.current?.click()}>
          {trans.__('Import a file …')}
        </TextButton>
        <input
          ref={file}
          type="file"
          hidden
          aria-label={trans.__('Choose a job file')}
          accept=".json,.jsonc,.txt"
          onChange={({ target }) => {
            const [chosen] = target.files ?? [];
            if (chosen) {
              void importFile(chosen, model, host);
            }
            target.value = ''; // the same file can be chosen again
          }}
        />
        {save && (
          <TextButton icon="save" title={trans.__('Save as a file …')} onClick={save}>
            {trans.__('Save as a file …')}
          </TextButton>
        )}
        {discard && model.hasChanges && (
          <TextButton icon="delete" onClick={discard}>
            {trans.__('Discard')}
          </TextButton>
        )}
        {children}
      </div>
      {(model.notice || model.isUntouched) && (
        <p className="pai-JobHead-notice" role="status">
          {model.notice ||
            trans.__('Fill in the form, or write JSON beside it; drop or paste a job here, or begin with a template.')}
          {model.canUndo && (
            <TextButton small onClick={() => model.undo()}>
              {trans.__('Undo')}
            </TextButton>
          )}
        </p>
      )}
    </div>
  );
}

/** The two sides as tabs, where only one has room. */
function Tabs({ side, id, show }: { side: Side; id: string; show: (side: Side) => void }): React.ReactElement {
  const { trans } = useHost();
  const names = { form: trans.__('Form'), json: trans.__('JSON') };
  const other = side === 'form' ? 'json' : 'form';
  return (
    <div className="pai-JobHead-sides" role="tablist" aria-label={trans.__('Form or JSON')}>
      {(['form', 'json'] as const).map(one => (
        <button
          key={one}
          type="button"
          role="tab"
          id={`${id}-${one}-tab`}
          aria-selected={one === side}
          aria-controls={`${id}-${one}`}
          tabIndex={one === side ? 0 : -1}
          onClick={() => show(one)}
          onKeyDown={event => {
            if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
              show(other);
              const place = event.currentTarget[one === 'form' ? 'nextElementSibling' : 'previousElementSibling'];
              (place as HTMLElement | null)?.focus();
            }
          }}
        >
          {names[one]}
        </button>
      ))}
    </div>
  );
}

/** Between form and JSON: the pointer, or arrow keys, make one wider and the other narrower. */
function Divider({ share, onMove }: { share: number; onMove: (share: number) => void }): React.ReactElement {
  const { trans } = useHost();
  const move = (to: number) => onMove(Math.min(Math.max(to, LEAST), MOST));
  return (
    <div
      className="pai-JobSides-divider"
      role="separator"
      aria-orientation="vertical"
      aria-label={trans.__('Width of the form')}
      aria-valuenow={Math.round(100 * share)}
      tabIndex={0}
      onPointerDown={event => {
        event.preventDefault(); // nothing is selected
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={({ currentTarget, pointerId, clientX }) => {
        if (currentTarget.hasPointerCapture(pointerId)) {
          const { left, width } = currentTarget.parentElement!.getBoundingClientRect();
          move((clientX - left) / width);
        }
      }}
      onKeyDown={({ key }) => {
        const step = { ArrowLeft: -STEP, ArrowRight: STEP }[key];
        if (step !== undefined) {
          move(share + step);
        }
      }}
    />
  );
}
