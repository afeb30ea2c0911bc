import { KernelSpec } from '@jupyterlab/services';
import { describe, expect, it } from 'vitest';

import { pythonKernel } from '../src/pythonKernel';

function specs(standard: string, languages: Record<string, string>): KernelSpec.ISpecModels {
  const kernelspecs = Object.entries(languages).map(([name, language]) => [name, { name, language }]);
  return { default: standard, kernelspecs: Object.fromEntries(kernelspecs) as KernelSpec.ISpecModels['kernelspecs'] };
}

describe('the kernel for the form', () => {
  it('is the default one when that speaks Python', () => {
    expect(pythonKernel(specs('mine', { a: 'python', mine: 'Python' }))).toBe('mine');
  });

  it('is another Python one when the default speaks something else', () => {
    expect(pythonKernel(specs('ir', { ir: 'R', python3: 'python' }))).toBe('python3');
  });

  it('is none where there is none', () => {
    expect(pythonKernel(specs('ir', { ir: 'R' }))).toBeUndefined();
    expect(pythonKernel(null)).toBeUndefined();
  });
});
