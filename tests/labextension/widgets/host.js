// A page that is only a host of widgets, as VS Code and Colab are: a kernel's WebSocket, and models for its comms.
// It knows nothing of ipywidgets but their messages, and of anywidget but what a module of its exports.

function packed(message, buffers) {
  const parts = [new TextEncoder().encode(JSON.stringify(message)), ...buffers.map(one => new Uint8Array(one))];
  let offset = 4 * (parts.length + 1);
  const whole = new Uint8Array(offset + parts.reduce((sum, { length }) => sum + length, 0));
  const view = new DataView(whole.buffer);
  view.setUint32(0, parts.length);
  parts.forEach((part, index) => {
    view.setUint32(4 * (index + 1), offset);
    whole.set(part, offset);
    offset += part.length;
  });
  return whole;
}

function unpacked(data) {
  if (typeof data === 'string') {
    return { ...JSON.parse(data), buffers: [] };
  }
  const view = new DataView(data);
  const starts = Array.from({ length: view.getUint32(0) }, (_, index) => view.getUint32(4 * (index + 1)));
  const parts = starts.map((start, index) => new DataView(data, start, (starts[index + 1] ?? data.byteLength) - start));
  return { ...JSON.parse(new TextDecoder().decode(parts[0])), buffers: parts.slice(1) };
}

window.host = (address, into) => {
  const socket = new WebSocket(address);
  socket.binaryType = 'arraybuffer';
  const ready = new Promise(resolve => socket.addEventListener('open', resolve));
  const models = new Map();
  const send = (type, content, buffers = []) => {
    const id = crypto.randomUUID();
    const header = { msg_id: id, msg_type: type, session: 'host', username: '', version: '5.3', date: new Date().toISOString() };
    const message = { header, parent_header: {}, metadata: {}, content, channel: 'shell' };
    socket.send(buffers.length > 0 ? packed(message, buffers) : JSON.stringify(message));
    return id;
  };
  const open = (id, state) => {
    const listeners = [];
    const changed = {};
    const tell = (event, ...news) => listeners.forEach(([name, hear]) => name === event && hear(...news));
    const model = {
      get: name => state[name],
      set: (name, value) => {
        state[name] = changed[name] = value;
        tell(`change:${name}`);
      },
      save_changes: () => {
        const given = { ...changed };
        Object.keys(changed).forEach(name => delete changed[name]);
        send('comm_msg', { comm_id: id, data: { method: 'update', state: given, buffer_paths: [] } });
      },
      on: (event, hear) => listeners.push([event, hear]),
      off: (event, hear) => listeners.splice(0, Infinity, ...listeners.filter(one => one[0] !== event || one[1] !== hear)),
      send: (content, _, buffers) => send('comm_msg', { comm_id: id, data: { method: 'custom', content } }, buffers)
    };
    models.set(id, { model, tell, state });
    return model;
  };
  socket.addEventListener('message', async ({ data }) => {
    const { msg_type: type, content, buffers } = unpacked(data);
    if (type === 'comm_open' && content.data.state._esm) {
      open(content.comm_id, content.data.state);
    } else if (type === 'comm_msg' && models.has(content.comm_id)) {
      const { tell, state } = models.get(content.comm_id);
      if (content.data.method === 'custom') {
        tell('msg:custom', content.data.content, buffers);
      } else if (content.data.method === 'update') {
        Object.assign(state, content.data.state);
        Object.keys(content.data.state).forEach(name => tell(`change:${name}`));
      }
    } else if (type === 'execute_result' && content.data['application/vnd.jupyter.widget-view+json']) {
      const { model } = models.get(content.data['application/vnd.jupyter.widget-view+json'].model_id);
      const blob = new Blob([model.get('_esm')], { type: 'text/javascript' });
      const { default: module } = await import(URL.createObjectURL(blob));
      await module.initialize({ model });
      const element = into.appendChild(document.createElement('section'));
      await module.render({ model, el: element });
    } else if (type === 'stream' || type === 'error') {
      into.appendChild(document.createElement('pre')).textContent = content.text ?? content.traceback.join('\n');
    }
  });
  return code => ready.then(() => send('execute_request', { code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false, stop_on_error: true }));
};
