// Which kernels run as jobs.

import { KernelSpec } from '@jupyterlab/services';

const PROVISIONER = 'pai-provisioner';

/** Return whether a kernel of this kind is a job of the scheduler. */
export function isJobKernel(spec: KernelSpec.ISpecModel | undefined): boolean {
  const described = spec?.metadata?.kernel_provisioner as { provisioner_name?: unknown } | undefined;
  return described?.provisioner_name === PROVISIONER;
}
