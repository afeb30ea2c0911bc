// The form's task roles: a card for each kind of task, to be added, copied, moved and removed.

import * as React from 'react';

import { IconButton, TextButton } from '../../console/kit/button';
import { LimitField, NumberField, TextField, useForm } from './fields';
import { isListOfObjects, Path } from './text';

const NUMBERS = ['taskNumber', 'gpuNumber', 'cpuNumber', 'memoryMB'];
const MORE_NUMBERS = ['shmMB', 'storageGB'];
const MORE = [...MORE_NUMBERS, 'portList', 'minFailedTaskCount', 'minSucceededTaskCount'];

/** Shows all task roles. */
export function Roles(): React.ReactElement {
  const { model, trans } = useForm();
  const roles = model.roles();
  return (
    <section className="pai-Roles" aria-label={model.schema.words(['taskRoles']).title}>
      <h3>{model.schema.words(['taskRoles']).title}</h3>
      <p className="pai-Field-help">
        {trans.__(
          'One card for each kind of task; all tasks of the job start together. A command runs in a folder of its own, without the files of this notebook server: “Submit with code …” takes a folder of them along.'
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
  const { model, trans } = useForm();
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
        <TextField path={[...path, 'name']} required placeholder={trans.__('required')} />
        {NUMBERS.map(one => (
          <NumberField key={one} path={[...path, one]} />
        ))}
      </div>
      <TextField
        path={[...path, 'command']}
        required
        lines={3}
        placeholder={trans.__('required, for example: %1', 'python3 train.py')}
      />
      <Details summary={trans.__('More: ports, shared memory, scratch disk, when the job ends')} isOpen={hasMore}>
        <div className="pai-Role-numbers">
          {MORE_NUMBERS.map(one => (
            <NumberField key={one} path={[...path, one]} />
          ))}
        </div>
        <Ports path={[...path, 'portList']} />
        <LimitField
          path={[...path, 'minFailedTaskCount']}
          absent={trans.__('1 (not given)')}
          never={trans.__('never by count (null)')}
        />
        <LimitField
          path={[...path, 'minSucceededTaskCount']}
          absent={trans.__('all (not given)')}
          never={trans.__('all (null)')}
        />
      </Details>
    </fieldset>
  );
}

/** What is folded away until somebody wants it, or something in it is wrong. */
export function Details({
  summary,
  isOpen,
  children
}: {
  summary: string;
  isOpen: boolean;
  children: React.ReactNode;
}): React.ReactElement {
  const [wanted, setWanted] = React.useState(false);
  return (
    <details open={wanted || isOpen} onToggle={({ currentTarget }) => setWanted(currentTarget.open)}>
      <summary>{summary}</summary>
      {children}
    </details>
  );
}

function Ports({ path }: { path: Path }): React.ReactElement {
  const { model, trans } = useForm();
  const words = model.schema.words(path);
  const value = model.value(path);
  const ports = isListOfObjects(value) ? value : [];
  return (
    <fieldset className="pai-Ports">
      <legend>{words.title}</legend>
      <p className="pai-Field-help">{words.description}</p>
      {ports.map((_, index) => (
        <div key={index} className="pai-Ports-row">
          <TextField path={[...path, index, 'label']} required placeholder={trans.__('required')} />
          <NumberField path={[...path, index, 'portNumber']} />
          <NumberField path={[...path, index, 'beginAt']} placeholder={trans.__('any free one')} />
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
  const { trans } = useForm();
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
