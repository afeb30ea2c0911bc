// Takes comments and indentation out of the styles in JupyterLab's bundle, which are texts to its builder.

/** Gets a module that css-loader has made: the styles stand in it as template literals. */
module.exports = source =>
  source.replace(/`[^`]*`/g, css =>
    css
      .replace(/\/\*[^]*?\*\//g, '')
      .replace(/(\\n|\n)\s*/g, ' ')
      .replace(/ *([{};,]) */g, '$1')
      .replace(/: /g, ':')
      .replace(/;\}/g, '}')
  );
