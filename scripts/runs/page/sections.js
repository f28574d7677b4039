// The sections of the page. Each returns {root, draw(view), exporters}; view is what the controls
// say, and `drawn` the units of series.js that are not hidden.

/** A heading with content. */
const section = (title, text = '') => element(`<section><h2>${title}</h2>
  ${text && `<p class="note">${text}</p>`}</section>`);

/** A figure: chart(view, width) returns what lineChart() does, or null without points; `legend` is
 * the list that shows its lines, if it is not that of the curves. */
function figure(name, title, note, chart, rows, legend) {
  const root = element(`<figure data-name="${name}"><figcaption><h3>${title}</h3></figcaption>
    <div class="plot"></div><p class="readout" aria-live="polite">${note}</p></figure>`);
  const [heading, plot, readout] = ['h3', '.plot', '.readout'].map((one) =>
    root.querySelector(one));
  let last, found;
  const box = exporter(name, () => csvText(rows(last)),
    () => svgText(plot, heading.textContent, found.legend));
  root.append(box.root);
  const draw = (view) => {
    last = view;
    const paper = plot.closest('.charts') ? 480 : 960;
    found = chart(view, view.printing ? paper : Math.max(300, plot.clientWidth || 600));
    root.hidden = !found;
    if (legend) legend.innerHTML = legendItems(found?.legend ?? []);
    if (!found) return;
    plot.innerHTML = found.markup;
    heading.textContent = found.title ?? title;
    readout.textContent = note;
    if (found.across) addCursor(plot.firstElementChild, found, readout);
    box.refresh();
  };
  return { root, exporters: [box], draw, redraw: () => draw(last) };
}

/** Sections that consist of figures and tables, below the elements `above`. */
function sectionOf(title, text, parts, above) {
  const root = section(title, text);
  const holder = element(`<div class="${above ? 'wide' : 'charts'}"></div>`);
  holder.append(...parts.map((part) => part.root));
  root.append(...(above ?? []), holder);
  return { root, exporters: parts.flatMap((part) => part.exporters ?? [part.csv]),
    draw: (view) => parts.forEach((part) => part.draw?.(view)) };
}

const emptyLegend = () => element('<ul class="legend"></ul>');

function curveFigure(data, column, title, note, y, fixed) {
  const axisOf = (view) => AXES[fixed ?? view.x];
  const series = (view) => seriesOf(view.drawn, column, axisOf(view).key);
  const draw = (view, width) => {
    const axis = axisOf(view), log = !fixed && view.logx;
    return lineChart({ width, title, series: series(view), bands: view.bands,
      x: { ...axis, log, from: log ? undefined : 0 },
      y: { form: short, log: column.endsWith('_loss') && view.logloss, ...y } });
  };
  const rows = (view) => [['label', axisOf(view).key, column, 'low', 'high', 'seeds'],
    ...series(view).flatMap((one) => one.points.map((point) =>
      [one.label, point.x, point.y, point.low, point.high, point.seeds]))];
  return figure(column, title, note, draw, rows);
}

function runsSection(data) {
  const root = section('Runs', 'Settings that differ, and results. Settings that all runs share ' +
    'are folded below.');
  const seeded = data.groups.length < data.runs.length;
  const parts = [...(seeded ? [tableOf('groups', data.tables.groups)] : []),
    tableOf('runs', data.tables.runs)];
  if (seeded) parts[0].root.prepend(element('<p class="note">By group of seeds: mean ± standard ' +
    'deviation over the finished runs.</p>'));
  for (const part of parts) root.append(part.root);
  for (const [name, title] of [['common', 'Common settings'],
    ['partial', 'Settings that only some runs have, from another version']]) {
    if (!data.tables[name].rows.length) continue;
    const table = tableOf(name, data.tables[name], false);
    const fold = element(`<details><summary>${title} (${data.tables[name].rows.length})</summary>
      </details>`);
    fold.append(table.root);
    root.append(fold);
    parts.push(table);
  }
  return { root, exporters: parts.map((part) => part.csv), draw() {} };
}

function curvesSection(data) {
  const widths = data.groups.map((group) => group.bin);
  const least = Math.min(...widths), most = Math.max(...widths);
  const binned = most === 1 ? 'One point is one step.' : 'One point is the mean of ' +
    `${least === most ? most : `${least} to ${most}`} steps (at most ${data.most_points} points).`;
  const parts = [
    curveFigure(data, 'train_loss', 'Training loss', binned),
    ...[['val_loss', 'Validation loss'], ['val_top1', 'Validation top-1'],
      ['val_top5', 'Validation top-5']]
      .filter(([column]) => data.runs.some((run) => run.curves[column].key.length))
      .map(([column, title]) => curveFigure(data, column, title, 'One point is one validation.')),
  ];
  return sectionOf('Curves', 'Lines are means over seeds. Bands go from the lowest to the ' +
    'highest value of the seeds and of the steps that a point averages.', parts);
}

function timeSection(data) {
  const title = 'Seconds of an epoch by phase', legend = emptyLegend();
  const bars = (view) => view.drawn.map(({ label, of }) => ({ label, parts: of.phases }))
    .filter((row) => row.parts.data !== undefined);
  const pick = element(`<label class="pick"><input type="checkbox" name="share">
    as shares</label>`);
  const share = pick.firstElementChild;
  const part = figure('seconds_by_phase', title, '', (view, width) => {
    const rows = bars(view);
    return rows.length ? barsChart({ width, rows, share: share.checked, title }) : null;
  }, (view) => [['label', ...PHASES], ...bars(view).map((row) =>
    [row.label, ...PHASES.map((phase) => row.parts[phase])])], legend);
  share.addEventListener('change', part.redraw);
  return sectionOf('Where the time goes', 'Mean over ranks and epochs. “exchange” is ' +
    'without “wait”, the time spent waiting for the slowest rank. Time outside of ' +
    'all phases is “other”.', [part], [pick, legend]);
}

function entriesSection(data) {
  const parts = [
    curveFigure(data, 'density', 'Density', '', { log: true }, 'epoch'),
    curveFigure(data, 'nnz_over_k', 'Entries sent / k', '', { from: 0, reference: 1 }, 'epoch'),
  ].filter(({ root }) => data.runs.some(({ curves }) =>
    curves[root.dataset.name].mean.some((value) => value !== 1 && value !== null)));
  if (!parts.length) return null;
  return sectionOf('Entries sent', 'Density is the fraction of the parameters asked for in an ' +
    'epoch. Sent over k are the entries sent over those asked for (k = density × parameters). ' +
    'Both are 1 for dense.', parts);
}
