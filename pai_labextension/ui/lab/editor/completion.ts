// What may be written at a place of a job's JSON: the schema's fields, and values where these are few.

import { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { getLocation } from 'jsonc-parser';

import { JobEditorModel } from './model';
import { Path, valueAt } from './text';

/** Complete names of fields, and values; for CodeMirror's `autocompletion`. */
export function completeJob(model: JobEditorModel): (context: CompletionContext) => CompletionResult | null {
  return ({ state, pos, explicit }) => {
    const text = state.doc.toString();
    const { path, isAtPropertyKey, previousNode } = getLocation(text, pos);
    const isInside = previousNode && previousNode.offset <= pos && pos <= previousNode.offset + previousNode.length;
    const word = /["\w]*$/.exec(text.slice(0, pos))![0];
    if (!isInside && word === '' && !explicit) {
      return null;
    }
    const from = isInside ? previousNode.offset : pos - word.length;
    const to = isInside ? previousNode.offset + previousNode.length : pos;
    const options = isAtPropertyKey ? names(model, path.slice(0, -1), text.slice(to)) : values(model, path);
    return options.length > 0 ? { from, to, options, validFor: /^"?[\w-]*$/ } : null;
  };
}

/** Complete the name of a field that is not there yet, with the value that it begins with. */
function names(model: JobEditorModel, path: Path, rest: string): Completion[] {
  const there = valueAt(model.config, path);
  const taken = new Set(typeof there === 'object' && there !== null ? Object.keys(there) : []);
  const hasValue = /^\s*:/.test(rest);
  return model.schema
    .names(path)
    .filter(name => !taken.has(name) || hasValue)
    .map(name => {
      const { title, description } = model.schema.words([...path, name]);
      const beginning = JSON.stringify(model.schema.beginning([...path, name]));
      return {
        label: `"${name}"`,
        detail: title,
        info: description,
        type: 'property',
        apply: hasValue ? `"${name}"` : `"${name}": ${beginning}`
      };
    });
}

function values(model: JobEditorModel, path: Path): Completion[] {
  const cluster = model.cluster.answer;
  const known: Record<string, readonly unknown[]> = {
    virtualCluster: cluster?.virtualClusters ?? [],
    gpuType: [...new Set(cluster?.nodes.flatMap(({ gpus }) => gpus.map(({ type }) => type)))],
    image: model.info.images
  };
  const found = path.length === 1 ? known[String(path[0])] : undefined;
  return (found ?? model.schema.values(path)).map(value => ({ label: JSON.stringify(value), type: 'constant' }));
}
