// The job as a form: a view of the one model that the JSON shows too.

import * as React from 'react';

import { gpuTypes } from '../data/cluster';
import { useHost } from '../host';
import { IconButton, TextButton } from '../kit/button';
import { Details, Mistakes } from '../kit/field';
import { FormContext, IForm, JobAfter, JobCheck, JobChoice, JobLimit, JobNumber, JobText, useForm } from './fields';
import { isListOfObjects, isObject, Path, shown, uniqueName } from './text';

const STORAGE = ['codeDir', 'dataDir', 'outputDir', 'authFile'];

/** The job's fields, or why there are none. */
export function JobForm(form: IForm): React.ReactElement {
  const { model } = form;
  return (
    <FormContext.Provider value={form}>
      {model.obstacle === null ? <Form /> : <Obstacle reason={model.obstacle} />}
    </FormContext.Provider>
  );
}

/** Shown in place of the form while the text says nothing that it has fields for. */
function Obstacle({ reason }: { reason: string }): React.ReactElement {
  const { model } = useForm();
  const { trans } = useHost();
  return (
    <div className="pai-JobForm-obstacle" role="alert">
      <p>{trans.__('The form follows as soon as the JSON is right:')}</p>
      <p>{reason}</p>
      {model.textError && (
        <TextButton onClick={() => model.goBack()}>{trans.__('Go back to the text that was right last')}</TextButton>
      )}
    </div>
  );
}

function Form(): React.ReactElement {
  const { model } = useForm();
  const { trans } = useHost();
  const cluster = model.cluster.answer;
  const clusters = cluster?.virtualClusters ?? ['default'];
  const types = gpuTypes(cluster?.nodes ?? []).map(
    ({ type, free, total, simulated }) =>
      [
        type,
        simulated
          ? trans.__('%1: %2 of %3 free (simulated)', type, free, total)
          : trans.__('%1: %2 of %3 free', type, free, total)
      ] as const
  );
  const name = model.value(['jobName']);
  const hasMore = model.mistakes.some(({ path }) => [...STORAGE, 'retryCount', 'extras'].includes(String(path[0])));
  return (
    <form onSubmit={event => event.preventDefault()} aria-label={trans.__('Job')}>
      <JobText
        path={['jobName']}
        required
        hint
        placeholder={trans.__('required')}
        beside={
          <TextButton
            title={trans.__('Append eight random characters to the name')}
            onClick={() => model.edit(['jobName'], uniqueName(typeof name === 'string' ? name : ''))}
          >
            {trans.__('Make unique')}
          </TextButton>
        }
      />
      <JobText
        path={['image']}
        required
        hint
        help={
          model.info.imageNeeded ? undefined : trans.__('Not used here: tasks run as processes of the machine itself.')
        }
        placeholder={trans.__('required, for example: %1', 'python:3.12')}
        suggestions={model.info.images}
      />
      <div className="pai-JobForm-pair">
        <JobChoice path={['virtualCluster']} choices={clusters.map(one => [one, one])} blank="default" />
        <JobChoice path={['gpuType']} choices={[['', trans.__('any type')], ...types]} blank="" />
      </div>
      <Roles />
      <Environment />
      <Details
        summary={trans.__(
          'More: storage folders, registry credentials, retries, priority, time limit, time to end, start after jobs'
        )}
        isOpen={hasMore}
      >
        {STORAGE.map(one => (
          <JobText key={one} path={[one]} hint />
        ))}
        <div className="pai-JobForm-pair">
          <JobNumber path={['retryCount']} />
          <JobNumber
            path={['extras', 'priority']}
            placeholder={trans.__('50 (not given); 0 to 100, higher comes first')}
          />
          <JobNumber
            path={['extras', 'maxRunSeconds']}
            placeholder={trans.__('that of the virtual cluster (not given)')}
          />
          <JobNumber
            path={['extras', 'terminationGraceSeconds']}
            placeholder={trans.__('that of the cluster, mostly 10 (not given)')}
          />
        </div>
        <JobAfter
          path={['extras', 'after']}
          placeholder={trans.__('no other job (not given); for example: %1', 'prepare, fetch:ended')}
        />
        <JobCheck
          path={['extras', 'preemptible']}
          whenAbsent
          label={trans.__('May be stopped for others and queued again; only such a job borrows what is idle')}
        />
      </Details>
    </form>
  );
}

const NUMBERS = ['taskNumber', 'gpuNumber', 'cpuNumber', 'memoryMB'];
const MORE_NUMBERS = ['shmMB', 'storageGB'];
const MORE = [...MORE_NUMBERS, 'portList', 'minFailedTaskCount', 'minSucceededTaskCount'];

/** Shows all task roles. */
export function Roles(): React.ReactElement {
  const { model, hasFolders } = useForm();
  const { trans } = useHost();
  const roles = model.roles();
  return (
    <section className="pai-Roles" aria-label={model.schema.words(['taskRoles']).title}>
      <h3>{model.schema.words(['taskRoles']).title}</h3>
      <p className="pai-Field-help">
        {hasFolders
          ? trans.__(
              'One card for each kind of task; all tasks of the job start together. A command runs in a folder of its own, without the files of this notebook server: “Submit with code …” takes a folder of them along.'
            )
          : trans.__(
              'One card for each kind of task; all tasks of the job start together. A command runs in a folder of its own. “%1” below names a folder of the storage that is copied there.',
              model.schema.words(['codeDir']).title
            )}
      </p>
      {roles.map((_, index) => (
        <RoleCard key={index} index={index} count={roles.length} />
      ))}
      <TextButton icon="add" onClick={() => model.addRole()}>
        {trans.__('Add a task role')}
      </TextButton>
    </section>
  );
}

function RoleCard({ index, count }: { index: number; count: number }): React.ReactElement {
  const { model } = useForm();
  const { trans } = useHost();
  const path: Path = ['taskRoles', index];
  const name = model.value([...path, 'name']);
  const title = typeof name === 'string' && name !== '' ? name : trans.__('Task role %1', index + 1);
  const hasMore = model.mistakes.some(mistake => mistake.path[1] === index && MORE.includes(String(mistake.path[2])));
  return (
    <fieldset className="pai-Role">
      <legend className="jp-sr-only">{trans.__('Task role %1', index + 1)}</legend>
      <div className="pai-Role-head">
        <strong aria-hidden="true">{title}</strong>
        <IconButton
          icon="up"
          label={trans.__('Move task role %1 up', index + 1)}
          disabled={index === 0}
          onClick={() => model.swapRoles(index - 1, index)}
        />
        <IconButton
          icon="down"
          label={trans.__('Move task role %1 down', index + 1)}
          disabled={index === count - 1}
          onClick={() => model.swapRoles(index, index + 1)}
        />
        <IconButton icon="copy" label={trans.__('Copy task role %1', index + 1)} onClick={() => model.addRole(index)} />
        <IconButton
          icon="delete"
          label={trans.__('Remove task role %1', index + 1)}
          disabled={count === 1}
          onClick={() => model.edit(path, undefined)}
        />
      </div>
      <div className="pai-Role-numbers">
        <JobText path={[...path, 'name']} required placeholder={trans.__('required')} />
        {NUMBERS.map(one => (
          <JobNumber key={one} path={[...path, one]} />
        ))}
      </div>
      <JobText
        path={[...path, 'command']}
        required
        lines={3}
        placeholder={trans.__('required, for example: %1', 'python3 train.py')}
      />
      <Details summary={trans.__('More: ports, shared memory, scratch disk, when the job ends')} isOpen={hasMore}>
        <div className="pai-Role-numbers">
          {MORE_NUMBERS.map(one => (
            <JobNumber key={one} path={[...path, one]} />
          ))}
        </div>
        <Ports path={[...path, 'portList']} />
        <JobLimit
          path={[...path, 'minFailedTaskCount']}
          absent={trans.__('1 (not given)')}
          never={trans.__('never by count (null)')}
        />
        <JobLimit
          path={[...path, 'minSucceededTaskCount']}
          absent={trans.__('all (not given)')}
          never={trans.__('all (null)')}
        />
      </Details>
    </fieldset>
  );
}

function Ports({ path }: { path: Path }): React.ReactElement {
  const { model } = useForm();
  const { trans } = useHost();
  const words = model.schema.words(path);
  const value = model.value(path);
  const ports = isListOfObjects(value) ? value : [];
  return (
    <fieldset className="pai-Ports">
      <legend>{words.title}</legend>
      <p className="pai-Field-help">{words.description}</p>
      {ports.map((_, index) => (
        <div key={index} className="pai-Ports-row">
          <JobText path={[...path, index, 'label']} required placeholder={trans.__('required')} />
          <JobNumber path={[...path, index, 'portNumber']} />
          <JobNumber path={[...path, index, 'beginAt']} placeholder={trans.__('any free one')} />
          <IconButton
            icon="delete"
            label={trans.__('Remove this port range')}
            onClick={() => model.edit([...path, index], undefined)}
          />
        </div>
      ))}
      <TextButton small icon="add" onClick={() => model.edit([...path, ports.length], { label: '' })}>
        {trans.__('Add a port range')}
      </TextButton>
      <PortNames role={model.value([...path.slice(0, -1), 'name'])} label={ports[0]?.label} />
    </fieldset>
  );
}

/** How commands find the ports: the variables of the first one, or where none is listed of `http`. */
function PortNames({ role, label }: { role: unknown; label: unknown }): React.ReactElement | null {
  const { trans } = useHost();
  if (typeof role !== 'string' || role === '') {
    return null;
  }
  const name = inVariables(role);
  const port = typeof label === 'string' && label !== '' ? inVariables(label) : 'http';
  return (
    <p className="pai-Field-help">
      {trans.__('Its port, in the command of this role:')} <code>{`$PAI_CONTAINER_HOST_${port}_PORT_LIST`}</code>
      <br />
      {trans.__('Its first task, for the other tasks of the job:')}{' '}
      <code>{`$PAI_HOST_IP_${name}_0:$PAI_${name}_0_${port}_PORT`}</code>
      <br />
      {trans.__('While the job runs, its page has links to its ports.')}
    </p>
  );
}

/** Write a name as it stands in the names of variables, which a shell reads. */
export function inVariables(name: string): string {
  return name.replace(/\W/g, '_');
}

/** Has a switch of its own. */
const DEBUG = 'isDebug';
const PATH = ['jobEnvs'] as const;

/** Shows all variables, to be changed, added and removed. */
export function Environment(): React.ReactElement {
  const { model, id } = useForm();
  const { trans } = useHost();
  // a variable that has no name yet is no part of the job
  const [fresh, setFresh] = React.useState<readonly number[]>([]);
  const [next, setNext] = React.useState(0);
  const value = model.value(PATH);
  const variables = isObject(value) ? value : {};
  const isSwitch = (name: string) => name === DEBUG && typeof variables[name] === 'boolean';
  const names = Object.keys(variables).filter(name => !isSwitch(name));
  const mistakes = model.mistakes.filter(({ path }) => path[0] === 'jobEnvs').map(({ message }) => message);
  const rename = (old: string, name: string) =>
    model.edit(
      PATH,
      Object.fromEntries(Object.entries(variables).map(([key, one]) => [key === old ? name : key, one]))
    );
  return (
    <fieldset className="pai-Environment">
      <legend title={model.schema.words(PATH).description}>{model.schema.words(PATH).title}</legend>
      {names.map(name => (
        <Variable
          key={`=${name}`}
          name={name}
          value={shown(variables[name])}
          taken={Object.keys(variables).filter(other => other !== name)}
          onName={changed => rename(name, changed)}
          onValue={text => model.edit([...PATH, name], typed(text, variables[name]))}
          onRemove={() => model.edit([...PATH, name], undefined)}
        />
      ))}
      {fresh.map(number => (
        <Variable
          key={number}
          name=""
          value=""
          taken={Object.keys(variables)}
          onName={name => {
            model.edit([...PATH, name], '');
            setFresh(fresh.filter(other => other !== number));
          }}
          onValue={null}
          onRemove={() => setFresh(fresh.filter(other => other !== number))}
        />
      ))}
      <Mistakes id={`${id}-jobEnvs`} mistakes={mistakes} />
      <TextButton
        small
        icon="add"
        onClick={() => {
          setFresh([...fresh, next]);
          setNext(next + 1);
        }}
      >
        {trans.__('Add a variable')}
      </TextButton>
      <JobCheck path={[...PATH, DEBUG]} label={trans.__('Debug: a task that fails keeps its container')} />
    </fieldset>
  );
}

interface IVariableProps {
  name: string;
  value: string;
  taken: readonly string[];
  onName: (name: string) => void;
  /** `null`: it needs a name first. */
  onValue: ((value: string) => void) | null;
  onRemove: () => void;
}

/** One variable. Its name counts when the input is left: each letter of it would be another variable. */
function Variable({ name, value, taken, onName, onValue, onRemove }: IVariableProps): React.ReactElement {
  const { trans } = useHost();
  const [typing, setTyping] = React.useState<string | null>(null);
  const isTaken = typing !== null && taken.includes(typing);
  const commit = () => {
    if (typing && typing !== name && !isTaken) {
      onName(typing);
    }
    if (!isTaken) {
      setTyping(null);
    }
  };
  return (
    <div className="pai-Environment-row">
      <input
        className="pai-Input"
        aria-label={trans.__('Name of the variable')}
        aria-invalid={isTaken}
        placeholder={trans.__('Name')}
        value={typing ?? name}
        spellCheck={false}
        onChange={({ target }) => setTyping(target.value)}
        onBlur={commit}
        onKeyDown={({ key }) => key === 'Enter' && commit()}
      />
      <input
        className="pai-Input"
        aria-label={trans.__('Value of the variable')}
        placeholder={onValue ? trans.__('Value') : trans.__('Give it a name first')}
        disabled={!onValue}
        value={value}
        spellCheck={false}
        onChange={({ target }) => onValue?.(target.value)}
      />
      <IconButton icon="delete" label={trans.__('Remove this variable')} onClick={onRemove} />
      <Mistakes mistakes={isTaken ? [trans.__('There is a variable %1 already.', typing)] : []} />
    </div>
  );
}

/** Keep the type that a value had, where the text still says one of it. */
function typed(text: string, before: unknown): unknown {
  const isNumber = typeof before === 'number' && text.trim() !== '' && String(Number(text)) === text;
  return isNumber ? Number(text) : text;
}
