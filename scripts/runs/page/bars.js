// Stacked bars.

const PHASES = ['data', 'forward', 'backward', 'select', 'exchange', 'wait', 'update', 'other'];

/** Bars as {markup, legend}; a row is {label, parts: {phase: seconds}}. `share`: of the whole. */
function barsChart({ width, rows, share, title }) {
  const step = 46, height = rows.length * step + MARGIN.bottom + 4;
  const sum = (row) => PHASES.reduce((total, phase) => total + (row.parts[phase] ?? 0), 0);
  const left = 8, high = share ? 1 : Math.max(...rows.map(sum), 1e-9);
  const x = scaleOf({ low: 0, high, from: left, to: width - MARGIN.right - (share ? 0 : 50),
    count: width / 85, form: share ? (value) => `${Math.round(100 * value)} %` : short });
  const bars = rows.map((row, i) => {
    const top = i * step + 20, whole = sum(row);
    let start = 0;
    const parts = PHASES.filter((phase) => row.parts[phase] > 0).map((phase) => {
      const seconds = row.parts[phase], size = share ? seconds / whole : seconds;
      const a = x.at(start), b = x.at(start += size);
      return `<rect class="segment ${phase}" data-label="${escaped(row.label)}"
        data-phase="${phase}" x="${a.toFixed(2)}"
        width="${(b - a).toFixed(2)}" y="${top}" height="20"><title>` +
        `${escaped(row.label)}: ${phase} ${short(seconds)} s, ` +
        `${(100 * seconds / whole).toFixed(1)} %` +
        '</title></rect>';
    });
    const total = share ? '' : `<text x="${(x.at(whole) + 5).toFixed(2)}" y="${top + 14}">` +
      `${short(whole)} s</text>`;
    return `<text class="strong" x="${left}" y="${top - 5}">${escaped(row.label)}</text>` +
      parts.join('') + total;
  });
  const told = rows.map((row) => `${row.label}: ${short(sum(row))} s`).join('; ');
  const label = share ? 'share of an epoch' : 'seconds of an average epoch';
  const markup = `<svg viewBox="0 0 ${width} ${height}" role="img"
    aria-label="${escaped(`${title}. ${told}.`)}">${axesMarkup(x, null, width, height, label)}
    ${bars.join('')}</svg>`;
  return { markup, legend: PHASES.map((phase) =>
    ({ label: phase, mark: `<rect class="${phase}" x="8" width="12" height="12"/>` })) };
}
