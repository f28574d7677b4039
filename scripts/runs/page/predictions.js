// The section of predictions, from `advise --csv`.

const MEASURES = { speedup: { at: 1, title: 'Speed-up over the best dense exchange' },
  seconds: { at: 4, title: 'Seconds of an iteration' } };

/** A look for each exchange; dense ones are grey. */
function adviceSeries(curves, at) {
  let sparse = 0, dense = 0;
  return curves.map(({ label, rows }) => {
    const grey = label.startsWith('dense');
    const number = grey ? dense++ : sparse++;
    return { label, column: 'prediction', look: grey ? 'dense' : `c${number % 8}`,
      dash: (grey ? number : Math.floor(number / 8)) % 4,
      points: rows.map((row) => ({ x: row[0], y: row[at], low: row[at + 1], high: row[at + 2] })) };
  });
}

function rangeText(row, at) {
  const [middle, low, high] = row.slice(at, at + 3).map(short);
  return low === high ? middle : `${middle} (${low}–${high})`;
}

function linkTable(data, panel) {
  const rows = [...panel.at_link].sort((a, b) => b.row[1] - a.row[1]);
  return tableOf(`predictions at the link, ${panel.ranks} ranks`, {
    names: ['exchange', 'Gbit/s', 'seconds of an iteration', 'speed-up'],
    rows: rows.map(({ label, row }) =>
      [label, short(row[0]), rangeText(row, 4), rangeText(row, 1)]),
    csv: csvText([['exchange', ...data.columns], ...rows.map(({ label, row }) => [label, ...row])]),
  });
}

function predictionSection(advice, number) {
  const choice = (name, value, text, on) => `<label><input type="radio" name="${name}${number}"
    value="${value}"${on ? ' checked' : ''}> ${text}</label>`;
  const pick = element(`<div class="pick"><label>ranks <select>${advice.ranks.map((panel, i) =>
    `<option value="${i}">${panel.ranks}</option>`).join('')}</select></label>
    ${choice('measure', 'speedup', 'speed-up', true)}
    ${choice('measure', 'seconds', 'seconds')}</div>`);
  const select = pick.querySelector('select');
  const panel = () => advice.ranks[select.value];
  const measure = () => MEASURES[pick.querySelector(':checked[type=radio]').value];
  const legend = emptyLegend(), table = element('<div></div>');
  const part = figure(`predictions_${number + 1}`, '', 'Bands: the range of the prediction.',
    (view, width) => {
      const title = `${measure().title}, ${panel().ranks} ranks`;
      return { ...lineChart({ width, title, series: adviceSeries(panel().curves, measure().at),
        bands: view.bands, dots: false,
        x: { label: 'Gbit/s', form: short, log: true, reference: panel().at_link[0]?.row[0] },
        y: { form: short, log: true } }), title };
    },
    () => [['exchange', ...advice.columns], ...panel().curves.flatMap(({ label, rows }) =>
      rows.map((row) => [label, ...row]))], legend);
  const found = sectionOf(`Predictions: ${escaped(advice.file)}`, 'By the cost model of ' +
    'advise; curves that are nowhere more than 1 % apart are one.', [part], [pick, legend]);
  found.root.append(table);
  const showTable = () => {
    const made = linkTable(advice, panel());
    found.exporters[1] = made.csv;
    table.replaceChildren(made.root);
  };
  showTable();
  pick.addEventListener('change', () => { showTable(); part.redraw(); });
  return found;
}
