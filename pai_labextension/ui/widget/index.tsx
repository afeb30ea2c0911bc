// The console in a widget of a notebook: what is known is the model's, what is drawn is the view's, in a shadow root.

import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { ClusterPage } from '../console/cluster/page';
import { IJob, IJobName } from '../console/data/client';
import { ClusterModel } from '../console/data/cluster';
import { JobsModel, key as keyOf } from '../console/data/jobs';
import { Signal, useSignal } from '../console/data/store';
import { JobEditorModel, ITextBuffer } from '../console/editor/model';
import { ICodePane, JobEditor } from '../console/editor/page';
import { applied, edits, Path, rangeOf } from '../console/editor/text';
import {
  Catalog,
  HostProvider,
  IHost,
  ITranslation,
  Place,
  ShownProvider,
  translation,
  useHost
} from '../console/host';
import { OpenJob, Tab } from '../console/job/page';
import { JobsPage } from '../console/jobs/page';
import { SchedulesModel } from '../console/jobs/schedules';
import { TextButton } from '../console/kit/button';
import { PageError } from '../console/kit/status';
import { StorageList } from '../console/storage/list';
import { submitWithCode } from '../console/submit/code';
import { Asset, CommTransport, IOptions, IWidgetModel, View, widgetHost, WidgetPlaces } from './host';

/** The style sheet, which the build writes here. */
declare const PAI_STYLE: string;

/** What a model knows, whichever views of it there are. */
interface IWidget {
  readonly host: Omit<IHost, 'root'>;
  readonly transport: CommTransport;
  readonly places: WidgetPlaces;
  readonly options: IOptions;
  readonly model: IWidgetModel;
  readonly jobs: () => JobsModel;
}

const widgets = new Map<string, Promise<IWidget>>();
let sheet: CSSStyleSheet | undefined;

/** Begin with a model: everything is asked through it. */
export function initialize(model: IWidgetModel, asset: Asset): void {
  widgets.set(model.get('_key') as string, begin(model, asset));
}

/** Forget a model that was closed. */
export function forget(key: string): void {
  widgets.delete(key);
}

/** Draw a model into an element. */
export function render(key: string, element: HTMLElement): View {
  const shadow = element.attachShadow({ mode: 'open' });
  // what is typed here is no shortcut of the notebook's
  element.dataset.lmSuppressShortcuts = 'true';
  element.addEventListener('keydown', event => event.stopPropagation());
  sheet ??= styleSheet();
  shadow.adoptedStyleSheets = [sheet];
  const page = document.createElement('div');
  page.className = 'pai-Widget';
  shadow.append(page);
  const root = createRoot(page);
  void widgets.get(key)?.then(widget => root.render(<Widget widget={widget} root={shadow} page={page} />));
  return () => root.unmount();
}

function styleSheet(): CSSStyleSheet {
  const made = new CSSStyleSheet();
  made.replaceSync(PAI_STYLE);
  return made;
}

async function begin(model: IWidgetModel, asset: Asset): Promise<IWidget> {
  const options = model.get('_options') as IOptions;
  const trans = await translationOf(options.language, asset);
  const transport = new CommTransport(model, options, trans);
  const isForm = model.get('_component') === 'submit';
  const places = new WidgetPlaces(placeOf(model, options), options.console, place => {
    if (isForm && place.page === 'job') {
      model.set('_submitted', { ...place.job, text: model.get('text') });
      model.save_changes();
      return true;
    }
    return false;
  });
  const host = widgetHost(transport, trans, options, places);
  let jobs: JobsModel | undefined;
  return { host, transport, places, options, model, jobs: () => (jobs ??= new ListedJobs(host.client, options)) };
}

async function translationOf(language: string, asset: Asset): Promise<ITranslation> {
  const name = language.toLowerCase().startsWith('zh') ? 'zh-CN' : null;
  const catalog = name ? (JSON.parse(new TextDecoder().decode(await asset(name))) as Catalog) : {};
  return translation(catalog);
}

/** What the widget is for. */
function placeOf(model: IWidgetModel, { name, user, path }: IOptions): Place {
  const page = model.get('_component') as Place['page'];
  if (page === 'job') {
    return { page, job: { name: name!, username: user ?? '' } };
  }
  return page === 'storage' ? { page, path: path ?? '' } : ({ page } as Place);
}

/** The jobs of which a table was asked for. */
class ListedJobs extends JobsModel {
  constructor(
    client: IHost['client'],
    private readonly wanted: IOptions
  ) {
    super(client, wanted.ownServer, wanted.states ? (wanted.user ?? undefined) : undefined);
  }

  get jobs(): readonly IJob[] | null {
    const { states = [], limit } = this.wanted;
    const found = super.jobs;
    return states.length === 0 && limit === undefined
      ? found
      : (found?.filter(({ state }) => states.length === 0 || states.includes(state)).slice(0, limit) ?? null);
  }
}

/** Shows what the widget is for, or what was opened from there. */
function Widget({ widget, root, page }: { widget: IWidget; root: ShadowRoot; page: Element }): React.ReactElement {
  const { places, transport } = widget;
  const host = React.useMemo(() => ({ ...widget.host, root }), [widget, root]);
  const { trans } = host;
  const isShown = useInView(page);
  useSignal(places.changed);
  useSignal(transport.busy);
  return (
    <HostProvider value={host}>
      <ShownProvider value={isShown}>
        {transport.isBusy && (
          <p className="pai-Widget-busy" role="status">
            {trans.__('Waiting for the kernel: a cell is running.')}
          </p>
        )}
        {places.isAway && (
          <p className="pai-Widget-back">
            <TextButton small onClick={() => places.goBack()}>
              {trans.__('Back')}
            </TextButton>
          </p>
        )}
        <Shown widget={widget} place={places.place} />
      </ShownProvider>
    </HostProvider>
  );
}

function Shown({ widget, place }: { widget: IWidget; place: Place }): React.ReactElement {
  const { places } = widget;
  switch (place.page) {
    case 'job':
      return <JobPart key={keyOf(place.job)} widget={widget} job={place.job} />;
    case 'submit':
      return <FormPart widget={widget} />;
    case 'cluster':
      return <ClusterPart />;
    case 'storage':
      return (
        <div className="pai-Widget-page">
          <StorageList path={place.path} onOpen={path => places.open({ page: 'storage', path })} />
        </div>
      );
    default:
      return <JobsPart widget={widget} />;
  }
}

/** Return whether an element is in view. */
function useInView(element: Element): boolean {
  const [isInView, setInView] = React.useState(true);
  React.useEffect(() => {
    const observer = new IntersectionObserver(entries => setInView(entries.at(-1)!.isIntersecting));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return isInView;
}

/** A job; without a user it is the person's own. */
function JobPart({ widget, job }: { widget: IWidget; job: IJobName }): React.ReactElement {
  const { client, places } = useHost();
  const [tab, onTab] = React.useState<Tab>('logs');
  const [user, setUser] = React.useState(job.username);
  const [error, setError] = React.useState('');
  React.useEffect(() => {
    if (user === '') {
      client.whoami().then(
        ({ username }) => setUser(username),
        (reason: Error) => setError(reason.message)
      );
    }
  }, [client, user]);
  if (user === '') {
    return <PageError text={error} />;
  }
  const jobs = widget.jobs();
  return (
    <div className="pai-Widget-page">
      <OpenJob
        {...{ jobs, tab, onTab }}
        job={{ ...job, username: user }}
        onDeleted={() => places.open({ page: 'jobs' })}
      />
    </div>
  );
}

function JobsPart({ widget }: { widget: IWidget }): React.ReactElement {
  const { client } = useHost();
  const model = widget.jobs();
  const [schedules] = React.useState(() => new SchedulesModel(client));
  return (
    <div className="pai-Widget-page">
      <JobsPage {...{ model, schedules }} />
    </div>
  );
}

function ClusterPart(): React.ReactElement {
  const { client } = useHost();
  const [cluster] = React.useState(() => new ClusterModel(client));
  React.useEffect(() => () => cluster.dispose(), [cluster]);
  return (
    <div className="pai-Widget-page">
      <ClusterPage cluster={cluster} />
    </div>
  );
}

/** The text of the form, which the kernel has, too. */
class TraitText implements ITextBuffer {
  constructor(private readonly model: IWidgetModel) {
    this.text = model.get('text') as string;
    model.on('change:text', () => {
      const text = model.get('text') as string;
      if (text !== this.text) {
        this.text = text;
        this.changed.emit();
      }
    });
  }

  readonly changed = new Signal();
  text: string;

  set(text: string): void {
    if (text !== this.text) {
      this.text = text;
      this.changed.emit();
      this.model.set('text', text);
      this.model.save_changes();
    }
  }

  edit(changes: Parameters<ITextBuffer['edit']>[0]): void {
    this.set(applied(this.text, [...changes]));
  }
}

/** A plain field for the text: CodeMirror would be as large as all else together. */
class PlainCode implements ICodePane {
  constructor(
    private readonly job: JobEditorModel,
    private readonly buffer: ITextBuffer,
    label: string
  ) {
    this.field.className = 'pai-Widget-code';
    this.field.spellcheck = false;
    this.field.setAttribute('aria-label', label);
    this.field.addEventListener('input', () => this.buffer.set(this.field.value));
  }

  attach(element: HTMLElement): () => void {
    const follow = () => {
      if (this.field.value !== this.buffer.text) {
        this.field.value = this.buffer.text;
      }
    };
    follow();
    element.append(this.field);
    const deaf = this.buffer.changed.connect(follow);
    return () => {
      deaf();
      this.field.remove();
    };
  }

  goTo(path: Path): void {
    const { from, to } = rangeOf(this.job.tree, path);
    this.field.focus();
    this.field.setSelectionRange(from, to);
  }

  private readonly field = document.createElement('textarea');
}

/** The form, and beneath it the job that was submitted. */
function FormPart({ widget }: { widget: IWidget }): React.ReactElement {
  const host = useHost();
  const { client, trans } = host;
  const { model: trait, options } = widget;
  const [editor, setEditor] = React.useState<{ model: JobEditorModel; code: PlainCode } | null>(null);
  const [error, setError] = React.useState('');
  React.useEffect(() => {
    const made = client.editorInfo().then(info => {
      const buffer = new TraitText(trait);
      const model = new JobEditorModel(buffer, info, client, trans);
      if (options.isNew) {
        const { text } = buffer;
        model.setText(info.imageNeeded ? text : applied(text, edits(text, ['image'], 'local/python')), {
          beginning: true
        });
      }
      setEditor({ model, code: new PlainCode(model, buffer, trans.__('Job as JSON')) });
      return model;
    });
    made.catch((reason: Error) => setError(reason.message));
    return () => void made.then(model => model.dispose()).catch(() => undefined);
  }, [client, trans, trait, options]);
  const submitted = useTrait(trait, '_submitted') as Partial<IJobName & { text: string }>;
  const { username, name, text } = submitted;
  React.useEffect(() => {
    if (name !== undefined && text !== undefined) {
      editor?.model.setSubmitted(text, name);
    }
  }, [editor, name, text]);
  if (!editor) {
    return error ? <PageError text={error} /> : <p role="status">{trans.__('One moment …')}</p>;
  }
  const withCode = (job: Record<string, unknown>) => submitWithCode({ path: '', job }, host);
  return (
    <>
      <div className="pai-Widget-form">
        <JobEditor
          {...editor}
          save={null}
          submitWithCode={options.hasCode ? withCode : null}
          onlyWithCode={options.hasCode === true}
          onSubmitted={() => undefined}
        />
      </div>
      {username !== undefined && name !== undefined && (
        <JobPart key={`${username}~${name}`} widget={widget} job={{ username, name }} />
      )}
    </>
  );
}

/** Return a trait of the kernel's, as it is now. */
function useTrait(model: IWidgetModel, name: string): unknown {
  const [value, setValue] = React.useState(() => model.get(name));
  React.useEffect(() => {
    const hear = () => setValue(() => model.get(name));
    model.on(`change:${name}`, hear);
    return () => model.off(`change:${name}`, hear);
  }, [model, name]);
  return value;
}
