// CSV of a chart or table: shown, copied, downloaded.

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

/** Buttons for the CSV that text() returns; `name` is that of the file and of the labels. */
function exporter(name, text) {
  const root = element(`<div class="export">
    <button type="button" aria-expanded="false">Copy CSV</button>
    <a href="#" download="${escaped(name)}.csv">Download CSV</a>
    <span class="note" role="status"></span>
    <textarea hidden readonly spellcheck="false" aria-label="CSV of ${escaped(name)}"></textarea>
  </div>`);
  const [button, link, status, area] = root.children;
  const show = (open) => {
    area.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
    if (open) area.value = area.textContent = text();
  };
  button.addEventListener('click', async () => {
    show(true);
    status.textContent = (await copyFrom(area)) ? 'copied' : 'select the text to copy it';
  });
  link.addEventListener('click', () => {
    link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(text())}`;
  });
  const refresh = () => { if (!area.hidden) show(true); };
  return { root, show, refresh };
}
