// The section of gradient distributions, from `train --analyze-every`.

function distributionSection(data) {
  const runs = data.runs.filter((run) => run.distribution);
  if (!runs.length) return null;
  const epochs = [...new Set(runs.flatMap((run) => Object.keys(run.distribution.histograms)))]
    .sort((a, b) => a - b);
  const pick = element(`<label class="pick">epoch <select>${epochs.map((epoch) =>
    `<option>${epoch}</option>`).join('')}</select></label>`);
  const select = pick.firstElementChild;
  select.value = epochs.at(-1);
  const series = (view) => units(data, true).filter((unit) =>
    view.drawn.some((one) => one.runs.includes(unit.runs[0]))).flatMap((unit) => {
    const bars = unit.runs[0].distribution?.histograms[select.value];
    return bars ? [{ ...unit, column: 'histogram',
      points: bars.x.map((x, i) => ({ x, y: bars.mean[i] })) }] : [];
  });
  const title = 'Magnitudes of the entries of gradient + residual', legend = emptyLegend();
  const part = figure('histogram', title, 'Share of the entries of rank 0 per factor of two; ' +
    'positive and negative ones together, without zeros.',
  (view, width) => lineChart({ width, title, series: series(view), bands: false, dots: false,
    x: { label: 'magnitude', form: short, log: true }, y: { form: short, log: true } }),
  (view) => [['label', 'epoch', 'magnitude', 'share_per_octave'], ...series(view).flatMap((one) =>
    one.points.map((point) => [one.label, select.value, point.x, point.y]))], legend);
  const columns = Object.keys(runs[0].distribution.moments);
  const rows = runs.flatMap((run) => run.distribution.moments.epoch.map((_, i) =>
    [run.name, ...columns.map((name) => run.distribution.moments[name][i])]));
  const moments = tableOf('distributions', { names: ['run', ...columns],
    rows: rows.map(([name, ...numbers]) => [name, ...numbers.map(short)]),
    csv: csvText([['run', ...columns], ...rows]) });
  const fold = element('<details><summary>Moments and residuals by epoch</summary></details>');
  fold.append(moments.root);
  const found = sectionOf('Gradient distribution', '', [part], [pick, legend]);
  found.root.append(fold);
  select.addEventListener('change', part.redraw);
  return { ...found, exporters: [...found.exporters, moments.csv] };
}
