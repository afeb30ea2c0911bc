// How JupyterLab's bundle is made: what several panels need is in one chunk of theirs, and styles come without air.

/** Taken into account by @jupyter/builder (`jupyterlab.webpackConfig` in package.json). */
module.exports = {
  target: ['web', 'es2022'],
  module: { rules: [{ test: /\.css$/, enforce: 'post', loader: require.resolve('./style.cjs') }] },
  optimization: {
    mangleExports: 'size',
    moduleIds: 'natural',
    splitChunks: {
      chunks: 'async',
      minSize: 0,
      maxAsyncRequests: 20,
      cacheGroups: { shared: { test: /lib.(console|lab)\b/, minChunks: 2, name: 'shared', chunks: 'async' } }
    }
  }
};
