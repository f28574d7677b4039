// Charts and tables as files: CSV is shown, copied and saved, SVG saved.

const csvCell = (value) => {
  const text = value === null || value === undefined ? ''
    : String(typeof value === 'number' ? +value.toPrecision(9) : value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvText = (rows) => rows.map((row) => row.map(csvCell).join(',') + '\n').join('');

/** Copies the text of a textarea; pages from a disk may lack the clipboard interface. */
async function copyFrom(area) {
  try {
    await navigator.clipboard.writeText(area.value);
    return true;
  } catch {
    area.focus();
    area.select();
    return document.execCommand('copy');
  }
}

/** The chart in `plot` as a file, which needs no style sheet: with its title above, its legend
 * below, and the colours that it has on the page. */
function svgText(plot, title, legend) {
  const { width, height } = plot.firstElementChild.viewBox.baseVal, top = 26, row = 18;
  const wide = Math.max(width, ...[title, ...legend.map(({ label }) => label)].map((text) =>
    45 + 7.5 * text.length));
  const size = `width="${wide}" height="${top + height + row * legend.length + 8}"`;
  const root = element(`<svg ${size}>
    <rect class="paper" ${size}/><text class="strong" x="8" y="18">${escaped(title)}</text>
    <g transform="translate(0 ${top})">${plot.firstElementChild.innerHTML}</g>
    ${legend.map(({ label, mark }, i) =>
      `<g transform="translate(8 ${top + height + row * i})">${mark}
      <text x="36" y="11">${escaped(label)}</text></g>`).join('')}</svg>`);
  root.querySelector('.cursor')?.remove();
  plot.append(root);
  for (const part of root.querySelectorAll('rect, text, line, path, circle')) {
    const style = getComputedStyle(part);
    for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity',
      'font-size', 'font-family']) part.setAttribute(name, style.getPropertyValue(name));
    part.removeAttribute('class');
  }
  root.remove();
  return new XMLSerializer().serializeToString(root);
}

/** Buttons for the files: csv() and svg() return their texts. `name` is that of the files. */
function exporter(name, csv, svg) {
  const kinds = [['csv', 'text/csv', csv], ...(svg ? [['svg', 'image/svg+xml', svg]] : [])];
  const root = element(`<div class="export">
    <button type="button" aria-expanded="false">Copy CSV</button>
    ${kinds.map(([kind]) => `<a href="#" download="${escaped(name)}.${kind}">Download
      ${kind.toUpperCase()}</a>`).join('')}
    <span class="note" role="status"></span>
    <textarea hidden readonly spellcheck="false" aria-label="CSV of ${escaped(name)}"></textarea>
  </div>`);
  const [button, status, area] = ['button', '.note', 'textarea'].map((one) =>
    root.querySelector(one));
  const show = (open) => {
    area.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
    if (open) area.value = area.textContent = csv();
  };
  button.addEventListener('click', async () => {
    show(true);
    status.textContent = (await copyFrom(area)) ? 'copied' : 'select the text to copy it';
  });
  root.querySelectorAll('a').forEach((link, i) => link.addEventListener('click', () => {
    link.href = `data:${kinds[i][1]};charset=utf-8,${encodeURIComponent(kinds[i][2]())}`;
  }));
  return { root, show, refresh: () => { if (!area.hidden) show(true); } };
}
