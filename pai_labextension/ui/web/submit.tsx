// The page on which a job is written and submitted; what is typed outlives a reload.

import * as React from 'react';

import { json, messageOf } from '../console/data/errors';
import { Debouncer } from '../console/data/store';
import { JobEditorModel } from '../console/editor/model';
import { openEditor, OwnEditor } from '../console/editor/own';
import { JobEditor } from '../console/editor/page';
import { isObject } from '../console/editor/text';
import { IHost, pathOf, Place, useHost } from '../console/host';
import { hand } from '../console/kit/copy';
import { PageError } from '../console/kit/status';
import type { IPageProps } from './pages';

import 'style/editor.css';

type Submit = Extract<Place, { page: 'submit' }>;

/** ms after the last key before what was typed is kept. */
const QUIET = 300;

export default function SubmitPlace({ place, models }: IPageProps<Submit>): React.ReactElement {
  const host = useHost();
  const { trans } = host;
  const [opened, setOpened] = React.useState<{ editor: OwnEditor; draft: Draft } | string | null>(null);
  const [from] = React.useState(place);
  React.useEffect(() => {
    let close = () => void (close = () => undefined);
    let isGone = false;
    open(host, from).then(
      made => {
        close = () => {
          made.draft.dispose();
          made.editor.dispose();
        };
        return isGone ? close() : setOpened(made);
      },
      (error: unknown) => setOpened(messageOf(error))
    );
    return () => {
      isGone = true;
      close();
    };
  }, [host, from]);
  if (opened === null) {
    return <p role="status">{trans.__('One moment …')}</p>;
  }
  if (typeof opened === 'string') {
    return <PageError text={opened} />;
  }
  const { editor } = opened;
  const { model } = editor;
  const save = () => {
    const { jobName } = model.config;
    const name = typeof jobName === 'string' && jobName !== '' ? jobName : 'job';
    hand(new Blob([model.text]), `${name}.pai.json`);
  };
  const discard = () => model.startOver(trans.__('Discarded.'));
  return (
    <JobEditor
      {...{ model, save, discard }}
      code={editor}
      submitWithCode={null}
      onSubmitted={() => void models.jobs.refresh()}
    />
  );
}

async function open(host: IHost, place: Submit): Promise<{ editor: OwnEditor; draft: Draft }> {
  const [{ username }, editor] = await Promise.all([host.client.whoami(), openEditor(host, place.from)]);
  editor.model.user = username;
  // (another person may use this browser, too)
  return { editor, draft: new Draft(editor.model, `pai-draft ${username} ${pathOf(place)}`) };
}

/** Keeps what is typed, until it is submitted. */
class Draft {
  constructor(
    private readonly model: JobEditorModel,
    private readonly key: string
  ) {
    const kept = json(localStorage.getItem(key) ?? '');
    if (isObject(kept) && typeof kept.text === 'string') {
      model.setText(kept.text);
    }
    this.deaf = model.changed.connect(() => this.keeping.invoke());
    window.addEventListener('pagehide', this.keep);
  }

  dispose(): void {
    this.keep();
    this.deaf();
    this.keeping.dispose();
    window.removeEventListener('pagehide', this.keep);
  }

  private readonly keep = () => {
    const { text, hasChanges } = this.model;
    try {
      if (hasChanges) {
        localStorage.setItem(this.key, JSON.stringify({ text }));
      } else {
        localStorage.removeItem(this.key);
      }
    } catch {
      // there is no room, or the browser keeps nothing: it is in the page all the same
    }
  };

  private readonly keeping = new Debouncer(async () => this.keep(), QUIET);
  private readonly deaf: () => void;
}
