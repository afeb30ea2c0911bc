// Which kernel can show the job form.

import { KernelSpec } from '@jupyterlab/services';

import { isJobKernel } from './kernels/specs';

/** Choose the kernel for the form: the default one if it speaks Python, else any that does, and needs no job itself. */
export function pythonKernel(specs: KernelSpec.ISpecModels | null): string | undefined {
  const isPython = (name: string) => specs?.kernelspecs[name]?.language.toLowerCase() === 'python';
  const names = Object.keys(specs?.kernelspecs ?? {})
    .filter(name => !isJobKernel(specs?.kernelspecs[name]))
    .sort();
  return [specs?.default ?? '', ...names].find(isPython);
}
