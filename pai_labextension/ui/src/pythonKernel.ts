// Which kernel can show the job form.

import { KernelSpec } from '@jupyterlab/services';

/** Choose the kernel for the form: the default one if it speaks Python, else any that does. */
export function pythonKernel(specs: KernelSpec.ISpecModels | null): string | undefined {
  const isPython = (name: string) => specs?.kernelspecs[name]?.language.toLowerCase() === 'python';
  const names = Object.keys(specs?.kernelspecs ?? {}).sort();
  return [specs?.default ?? '', ...names].find(isPython);
}
