// Stacked bars.

const PHASES = ['data', 'forward', 'backward', 'select', 'exchange', 'wait', 'update', 'other'];

/** Bars as {markup, legend}; a row is {label, parts: {phase: seconds}}. `share`: of the whole. */
function barsChart({ width, rows, share, title }) {
  const step = 46, height = rows.length * step + MARGIN.bottom + 4;
  const sum = (row) => PHASES.reduce((total, phase) => total + (row.parts[phase] ?? 0), 0);
  const left = 8, right = width - MARGIN.right - (share ? 0 : 50);
  const high = share ? 1 : Math.max(...rows.map(sum), 1e-9);
  const x = scaleOf({ low: 0, high, from: left, to: right, count: width / 85 });
  const form = share ? (value) => `${Math.round(100 * value)} %` : short;
  const ticks = x.ticks.map((value) => {
    const at = x.at(value).toFixed(2), end = height - MARGIN.bottom;
    return `<line class="grid" x1="${at}" x2="${at}" y1="0" y2="${end}"/>
      ${tickBelow(value, at, end + 16, width, form(value))}`;
  });
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
  const markup = `<svg viewBox="0 0 ${width} ${height}" role="img"
    aria-label="${escaped(`${title}. ${told}.`)}">${ticks.join('')}${bars.join('')}
    <text x="${(left + right) / 2}" y="${height - 6}" text-anchor="middle">` +
    `${share ? 'share of an epoch' : 'seconds of an average epoch'}</text></svg>`;
  return { markup, legend: PHASES.map((phase) =>
    ({ label: phase, mark: `<rect class="${phase}" x="8" width="12" height="12"/>` })) };
}
