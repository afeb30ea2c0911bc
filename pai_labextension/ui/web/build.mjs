// Makes the pages of the console on the web: one bundle of scripts and one of styles, packed, named by their content.

import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import { rspack } from '@rspack/core';

const at = path => fileURLToPath(new URL(path, import.meta.url));
const out = at('../../console/static/');
/** What is worth packing, in bytes. */
const LEAST = 1000;

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const stats = await new Promise((resolve, reject) =>
  rspack(
    {
      mode: 'production',
      target: ['web', 'es2022'],
      entry: { console: [at('../lib/web/main.js'), at('../style/web.css')] },
      output: {
        path: out,
        filename: '[name].[contenthash:16].js',
        cssFilename: '[name].[contenthash:16].css',
        cssChunkFilename: '[name].[contenthash:16].css',
        module: true
      },
      // (what a page that is loaded late alone needs of the style, it imports)
      resolve: { alias: { style: at('../style') } },
      module: {
        rules: [
          { test: /\.css$/, type: 'css' },
          { test: /\.svg$/, type: 'asset/inline' }
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

/** Write a file whose name has its content's hash; return the name. */
function write(name, ending, text) {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16);
  writeFileSync(`${out}${name}.${hash}.${ending}`, text);
  return `${name}.${hash}.${ending}`;
}

const catalog = JSON.parse(readFileSync(at('../../locale/zh_CN/LC_MESSAGES/pai_labextension.json'), 'utf8'));
delete catalog[''];
const translation = write('zh-CN', 'json', JSON.stringify(catalog));
const mark = write('mark', 'svg', readFileSync(at('../style/mark.svg'), 'utf8'));
const manifest = write(
  'console',
  'webmanifest',
  JSON.stringify({
    name: 'PAI',
    short_name: 'PAI',
    start_url: '../jobs',
    scope: '../',
    display: 'standalone',
    icons: [{ src: mark, sizes: 'any', type: 'image/svg+xml' }]
  })
);
const made = ending => readdirSync(out).find(name => name.startsWith('console.') && name.endsWith(ending));
writeFileSync(
  `${out}files.json`,
  JSON.stringify({ script: made('.js'), style: made('.css'), translation, mark, manifest })
);
for (const name of readdirSync(out)) {
  const content = readFileSync(out + name);
  if (content.length >= LEAST && name !== 'files.json') {
    writeFileSync(`${out}${name}.br`, brotliCompressSync(content));
    writeFileSync(`${out}${name}.gz`, gzipSync(content, { level: 9 }));
  }
}
