// Makes what a kernel sends to its widgets: the loader, the console in one file with its styles, the translation.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { rspack } from '@rspack/core';

const at = path => fileURLToPath(new URL(path, import.meta.url));
const out = at('../../widgets/static/');

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

/** Bundle one file; `words` are written into it. */
async function bundle(name, entry, words = {}) {
  const stats = await new Promise((resolve, reject) =>
    rspack(
      {
        mode: 'production',
        target: ['web', 'es2022'],
        entry: { [name]: at(entry) },
        output: {
          path: out,
          filename: '[name].js',
          cssFilename: '[name].css',
          module: true,
          library: { type: 'module' }
        },
        module: {
          rules: [{ test: /\.css$/, type: 'css' }],
          parser: { javascript: { dynamicImportMode: 'eager' } }
        },
        plugins: [
          new rspack.DefinePlugin(
            Object.fromEntries(Object.entries(words).map(([word, text]) => [word, JSON.stringify(text)]))
          )
        ],
        optimization: {
          minimizer: [
            new rspack.SwcJsMinimizerRspackPlugin(),
            // `light-dark()` stays as it is: what stands in for it in older browsers needs a page of ours
            new rspack.LightningCssMinimizerRspackPlugin({
              minimizerOptions: { targets: ['chrome >= 123', 'firefox >= 120', 'safari >= 17.5'] }
            })
          ]
        },
        performance: false
      },
      (error, result) => (error ? reject(error) : resolve(result))
    )
  );
  if (stats.hasErrors()) {
    throw new Error(stats.toString({ all: false, errors: true }));
  }
}

await bundle('style', '../style/widget.css');
await bundle('console', '../lib/widget/index.js', { PAI_STYLE: readFileSync(`${out}style.css`, 'utf8') });
const hash = createHash('sha256')
  .update(readFileSync(`${out}console.js`))
  .digest('hex');
await bundle('loader', '../lib/widget/loader.js', { PAI_HASH: hash.slice(0, 16) });
rmSync(`${out}style.css`);
rmSync(`${out}style.js`, { force: true });
const catalog = JSON.parse(readFileSync(at('../../locale/zh_CN/LC_MESSAGES/pai_labextension.json'), 'utf8'));
delete catalog[''];
writeFileSync(`${out}zh-CN.json`, JSON.stringify(catalog));
writeFileSync(
  `${out}files.json`,
  JSON.stringify({ loader: 'loader.js', console: 'console.js', 'zh-CN': 'zh-CN.json' })
);
