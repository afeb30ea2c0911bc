// Submit with code, as the notebook server does it: what would go along, and the job with it.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { TranslationBundle } from '@jupyterlab/translation';
import { is } from 'valibot';

import { json, parsed } from '../answers';
import { CodePlan as IPlan, SubmitProgress as IProgress, SubmittedJob as ISubmitted } from '../generated/types.gen';
import { vCodePlan, vRefusal, vSubmitLine } from '../generated/valibot.gen';

export type {
  CodePlan as IPlan,
  SubmitProgress as IProgress,
  SubmittedJob as ISubmitted
} from '../generated/types.gen';

/** A job file of the file browser, or a job and the folder of its code; what is left out is as the settings say. */
export interface ISubmitRequest {
  readonly path: string;
  readonly job?: Record<string, unknown>;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly generateName?: boolean;
}

/** What submits in the notebook server. Every call rejects with an Error whose message is for people. */
export class SubmitClient {
  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly language: string,
    protected readonly trans: TranslationBundle
  ) {}

  /** Ask for what ends in a job, and read it line by line; `onProgress` is told how far the upload is. */
  protected async submitAt(
    path: string,
    body: object,
    onProgress: (progress: IProgress) => void,
    signal: AbortSignal
  ): Promise<ISubmitted> {
    const response = await this.post(path, body, signal);
    for await (const line of linesOf(response.body!)) {
      const { progress, error, job } = parsed(vSubmitLine, json(line), this.trans);
      if (progress) {
        onProgress(progress);
      } else if (error) {
        throw new Error(error.message);
      } else if (job) {
        return job;
      }
    }
    throw new Error('the connection broke off');
  }

  protected async post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
    const headers = { 'Accept-Language': this.language.replace('_', '-'), 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body), ...(signal ? { signal } : {}) };
    const url = URLExt.join(this.settings.baseUrl, path);
    const response = await ServerConnection.makeRequest(url, init, this.settings);
    if (!response.ok) {
      const answer = json(await response.text());
      const message = is(vRefusal, answer) ? answer.message : undefined;
      throw new Error(message ?? `${response.status} ${response.statusText}`);
    }
    return response;
  }
}

/** Submits jobs with code. */
export class CodeClient extends SubmitClient {
  async plan(request: ISubmitRequest): Promise<IPlan> {
    const response = await this.post('pai/code-plan', request);
    return parsed(vCodePlan, json(await response.text()), this.trans);
  }

  /** Upload and submit; `onProgress` is told how far the code is. */
  submit(request: ISubmitRequest, onProgress: (progress: IProgress) => void, signal: AbortSignal): Promise<ISubmitted> {
    return this.submitAt('pai/submit-with-code', request, onProgress, signal);
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split('\n');
    rest = lines.pop()!;
    yield* lines;
    if (done) {
      return;
    }
  }
}

/** Patterns as they are typed, one in a line. */
export function patterns(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
}
