// The controls above the page; the part of the address behind # holds what differs from the start.

const DEFAULTS = { x: 'epoch', logx: 'auto', seeds: 'off', bands: 'on', logloss: 'off',
  numbers: 'off', theme: 'auto' };

/** Reads and writes the controls: {view(), load(), onChange(call)}. */
function controlsOf(data) {
  const form = document.getElementById('controls');
  if (!data.runs.some((run) => run.curves.train_loss.bytes_sent.some(Boolean)))
    form.querySelector('[value=bytes]').parentNode.remove();
  const boxes = ['seeds', 'bands', 'logloss', 'numbers'];
  let logx = 'auto';
  const automatic = () => farApart(data, AXES[form.elements.x.value].key);

  const load = () => {
    const anchor = new URLSearchParams(location.hash.slice(1));
    const given = { ...DEFAULTS, ...Object.fromEntries(anchor) };
    form.elements.x.value = given.x in AXES ? given.x : DEFAULTS.x;
    form.elements.theme.value = /^(light|dark)$/.test(given.theme) ? given.theme : 'auto';
    for (const name of boxes) form.elements[name].checked = given[name] === 'on';
    logx = given.logx;
    form.elements.logx.checked = logx === 'auto' ? automatic() : logx === 'on';
  };
  const save = () => {
    const now = { x: form.elements.x.value, theme: form.elements.theme.value, logx };
    for (const name of boxes) now[name] = form.elements[name].checked ? 'on' : 'off';
    const changed = Object.entries(now).filter(([name, value]) => value !== DEFAULTS[name]);
    history.replaceState(null, '', `#${new URLSearchParams(changed)}`);
  };
  const view = () => ({ x: form.elements.x.value, logx: form.elements.logx.checked,
    theme: form.elements.theme.value,
    ...Object.fromEntries(boxes.map((name) => [name, form.elements[name].checked])) });
  const onChange = (call) => {
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('change', (event) => {
      if (event.target.name === 'logx') logx = event.target.checked ? 'on' : 'off';
      if (event.target.name === 'x') {
        logx = 'auto';
        form.elements.logx.checked = automatic();
      }
      save();
      call();
    });
    window.addEventListener('hashchange', () => { load(); call(); });
  };
  return { view, load, onChange };
}

/** The legend, whose boxes hide lines: {root, draw(view)}; draw sets view.drawn. */
function legendOf(data, redraw) {
  const root = element('<ul class="legend" aria-label="Lines"></ul>');
  const hidden = new Set();
  let before;
  root.addEventListener('change', ({ target }) => {
    hidden[target.checked ? 'delete' : 'add'](target.value);
    redraw();
  });
  const draw = (view) => {
    const every = units(data, view.seeds);
    if (before !== view.seeds) {
      before = view.seeds;
      hidden.clear();
      root.innerHTML = legendItems(every.map(keyOf), (i) =>
        `<input type="checkbox" value="${i}" checked>`);
    }
    view.drawn = every.filter((_, i) => !hidden.has(String(i)));
  };
  return { root, draw };
}
