// Makes src/generated: types of the answers that the front end reads, and Valibot schemas that tell whether something
// is one, from the scheduler's OpenAPI document and answers.yaml. `node generate.mjs FOLDER` makes them elsewhere.

import { readFileSync } from 'node:fs';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

import { createClient } from '@hey-api/openapi-ts';
import { parse } from 'yaml';

/** Operations of the scheduler whose answers are read, and what we call an answer. */
const OPERATIONS = { whoami: 'User', jobs: 'Jobs', job: 'JobDetail', queue: 'Queues', publicKeys: 'PublicKeys' };
/** Of schemas of which little is read, what is. */
const PARTS = {
  JobStatus: ['waitingReason'],
  TaskRoleStatus: ['taskStatuses'],
  TaskStatus: ['taskIndex', 'taskState', 'containerPorts']
};
/** What keeps the scheduler to its word but would have this page refuse the answers of a newer one. */
const LIMITS = new Set(['additionalProperties', 'minimum', 'maximum', 'minLength', 'minItems', 'maxItems']);

function read(path) {
  return parse(readFileSync(new URL(path, import.meta.url), 'utf8'), { merge: true });
}

/** The schemas of the answers, and all that they refer to. */
function needed() {
  const document = read('../../../docs/users/openapi.yaml');
  const own = read('answers.yaml');
  const known = { ...document.components.schemas, ...own };
  for (const [name, parts] of Object.entries(PARTS)) {
    const isPart = ([property]) => parts.includes(property);
    known[name].properties = Object.fromEntries(Object.entries(known[name].properties).filter(isPart));
    known[name].required = parts;
  }
  const operations = Object.values(document.paths).flatMap(path => Object.values(path));
  const answers = Object.entries(OPERATIONS).map(([id, name]) => {
    const { responses } = operations.find(operation => operation.operationId === id);
    const { schema } = responses['200'].content['application/json'];
    known[name] ??= schema;
    return name;
  });
  const found = {};
  const add = name => {
    if (!(name in found)) {
      found[name] = known[name];
      for (const [, other] of JSON.stringify(known[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
        add(other);
      }
    }
  };
  [...answers, ...Object.keys(own)].forEach(add);
  return found;
}

/** Without limits; and the values of a map written out, as openapi-ts takes any where they are but named. */
function adapted(schemas) {
  return JSON.parse(
    JSON.stringify(schemas, (key, value) => {
      if (LIMITS.has(key) && typeof value !== 'object') {
        return undefined;
      }
      // a newer scheduler may have more of what is said to be a string, of which nothing is said then
      if (value?.type === 'string' && value.enum) {
        return { ...value, enum: undefined };
      }
      return key === 'additionalProperties' && value.$ref ? schemas[value.$ref.split('/').pop()] : value;
    })
  );
}

await createClient({
  input: {
    openapi: '3.1.0',
    info: { title: 'Answers', version: '1' },
    paths: {},
    components: { schemas: adapted(needed()) }
  },
  output: { path: argv[2] ?? fileURLToPath(new URL('../src/generated', import.meta.url)), entryFile: false },
  plugins: ['@hey-api/typescript', 'valibot'],
  logs: { level: 'error', file: false }
});
