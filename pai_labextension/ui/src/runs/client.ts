// Files that run as jobs, as the notebook server does it: what would come of it, and the job itself.

import { json, parsed } from '../answers';
import { RunPlan as IRunPlan } from '../generated/types.gen';
import { vRunPlan } from '../generated/valibot.gen';
import { IProgress, ISubmitted, SubmitClient } from '../submit/client';
import { IRunSchedule } from './rhythm';

export type { RunPlan as IRunPlan } from '../generated/types.gen';

/** A file of the file browser; what is left out is as the notebook server thinks. */
export interface IRunRequest {
  readonly path: string;
  readonly name?: string;
  readonly image?: string;
  readonly gpus?: number;
  readonly gpuType?: string;
  readonly cpus?: number;
  readonly memoryMB?: number;
  readonly virtualCluster?: string;
  /** Those of a notebook that are to be other than what stands there. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Of a script, as a shell reads them. */
  readonly arguments?: string;
  readonly results?: string;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  /** When it runs again and again; absent: once, now. */
  readonly schedule?: IRunSchedule | undefined;
}

export class RunClient extends SubmitClient {
  async plan(request: IRunRequest): Promise<IRunPlan> {
    const response = await this.post('pai/run-plan', request);
    return parsed(vRunPlan, json(await response.text()), this.trans);
  }

  /** Upload, and submit or schedule; `onProgress` is told how far the upload is. */
  submit(request: IRunRequest, onProgress: (progress: IProgress) => void, signal: AbortSignal): Promise<ISubmitted> {
    return this.submitAt('pai/run-file', request, onProgress, signal);
  }
}
