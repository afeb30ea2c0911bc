// Makes console/generated: types of the answers that the front end reads, and Valibot schemas that tell whether something
// is one, from answers.json. `node generate.mjs FOLDER` makes them elsewhere.

import { readFileSync } from 'node:fs';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

import { createClient } from '@hey-api/openapi-ts';

/** What keeps the scheduler to its word but would have this page refuse the answers of a newer one. */
const LIMITS = new Set(['minimum', 'maximum', 'minLength', 'minItems', 'maxItems']);

const schemas = JSON.parse(readFileSync(new URL('answers.json', import.meta.url), 'utf8'));

/** Without limits; and the values of a map written out, as openapi-ts takes any where they are but named. */
function adapted(key, value) {
  if (LIMITS.has(key) && typeof value !== 'object') {
    return undefined;
  }
  // a newer scheduler may have more of what is said to be a string, of which nothing is said then
  if (value?.type === 'string' && value.enum) {
    return { ...value, enum: undefined };
  }
  // an integer is a number; of an array of either openapi-ts would check nothing
  if (value?.anyOf?.every(({ type }) => type === 'integer' || type === 'number')) {
    return { type: 'number' };
  }
  return key === 'additionalProperties' && value.$ref ? schemas[value.$ref.split('/').pop()] : value;
}

await createClient({
  input: {
    openapi: '3.1.0',
    info: { title: 'Answers', version: '1' },
    paths: {},
    components: { schemas: JSON.parse(JSON.stringify(schemas, adapted)) }
  },
  output: { path: argv[2] ?? fileURLToPath(new URL('../console/generated', import.meta.url)), entryFile: false },
  plugins: ['@hey-api/typescript', 'valibot'],
  logs: { level: 'error', file: false }
});
