// Line charts.

const MARGIN = { left: 58, right: 14, top: 10, bottom: 42 };
let clips = 0;

/** The label of a tick of the x axis, centred below it as far as the picture has room. */
function tickBelow(value, at, y, width, text) {
  const half = 3.9 * text.length;  // pixels of a wide font
  const x = Math.max(half, Math.min(width - half, at)).toFixed(2);
  return `<text class="tick" data-axis="x" data-value="${value}" data-at="${at}" x="${x}" y="${y}"
    text-anchor="middle">${text}</text>`;
}

/** Axes with grid lines as markup; bars have no y. Ticks carry their value, so that tests can read
 * positions back. */
function axesMarkup(x, y, width, height, label) {
  const bottom = height - MARGIN.bottom, { from: left, to: right } = x;
  const across = x.ticks.map((value) => {
    const at = x.at(value).toFixed(2);
    return `<line class="grid" x1="${at}" x2="${at}" y1="${MARGIN.top}" y2="${bottom}"/>` +
      tickBelow(value, at, bottom + 16, width, x.form(value));
  });
  const up = (y?.ticks ?? []).map((value) => {
    const at = y.at(value).toFixed(2);
    return `<line class="grid" x1="${left}" x2="${right}" y1="${at}" y2="${at}"/>
      <text class="tick" data-axis="y" data-value="${value}" data-at="${at}"
        x="${left - 6}" y="${at}" dy="0.35em" text-anchor="end">${y.form(value)}</text>`;
  });
  return `${up.join('')}${across.join('')}
    <line class="axis" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>
    <text x="${(left + right) / 2}" y="${height - 6}" text-anchor="middle">${label}</text>`;
}

const visible = (points, x, y) => points.filter((point) =>
  Number.isFinite(point.x) && Number.isFinite(point.y) &&
  (!x.log || point.x > 0) && (!y.log || point.y > 0));

/** The band of a series: along the highest values, and back along the lowest. */
function bandMarkup(points, x, y, look) {
  const banded = points.filter((point) => point.low !== undefined && (!y.log || point.low > 0));
  if (banded.length < 2 || !banded.some((point) => point.high > point.low)) return '';
  const along = (list, key) => list.map((point) =>
    `${x.at(point.x).toFixed(2)},${y.at(point[key]).toFixed(2)}`);
  const outline = [...along(banded, 'high'), ...along([...banded].reverse(), 'low')];
  return `<path class="band ${look}" d="M${outline.join('L')}Z"/>`;
}

/**
 * A line chart as {markup, x, y, series}, or null without any point. A series is {label, look,
 * dash, column, points: [{x, y, low, high}]}; x and y are {form, log, from, label, reference}.
 */
function lineChart({ width, title, series, x, y, bands, dots = true }) {
  const height = Math.round(Math.min(340, Math.max(240, width * 0.6)));
  const shown = series.map((one) => ({ ...one, points: visible(one.points, x, y) }));
  const points = shown.flatMap((one) => one.points);
  const ends = points.flatMap((point) => bands && point.low !== undefined
    ? [point.y, point.low, point.high] : [point.y]);
  const xs = domainOf(points.map((point) => point.x), { log: x.log, from: x.from, space: 0.02 });
  const ys = domainOf(ends.concat(y.reference ?? []), { log: y.log, from: y.from });
  if (!points.length || !xs || !ys) return null;
  const across = scaleOf({ ...x, ...xs, from: MARGIN.left, to: width - MARGIN.right,
    count: width / 85 });
  const up = scaleOf({ ...y, ...ys, from: height - MARGIN.bottom, to: MARGIN.top,
    count: height / 50 });
  const clip = `clip${++clips}`;
  const place = (point) => `${across.at(point.x).toFixed(2)},${up.at(point.y).toFixed(2)}`;
  const lines = shown.filter((one) => one.points.length).map((one) => {
    const marks = !dots || one.points.length > 45 ? '' : one.points.map((point) =>
      `<circle class="dot ${one.look}" r="2.6" cx="${across.at(point.x).toFixed(2)}"
        cy="${up.at(point.y).toFixed(2)}"/>`).join('');
    return (bands ? bandMarkup(one.points, across, up, one.look) : '') +
      `<path class="line${one.points.length > 100 ? ' thin' : ''} ${one.look} d${one.dash}"
        data-column="${escaped(one.column)}"
        data-label="${escaped(one.label)}" d="M${one.points.map(place).join('L')}"/>${marks}`;
  });
  const at = y.reference === undefined ? '' : up.at(y.reference).toFixed(2);
  const reference = at && `<line class="reference" x1="${MARGIN.left}" x2="${width - MARGIN.right}"
    y1="${at}" y2="${at}"/>`;
  const mark = x.reference === undefined ? '' : across.at(x.reference).toFixed(2);
  const upright = mark && `<line class="reference" x1="${mark}" x2="${mark}" y1="${MARGIN.top}"
    y2="${height - MARGIN.bottom}"/><text x="${mark}" y="${MARGIN.top + 10}" dx="4">link</text>`;
  const told = shown.filter((one) => one.points.length).map((one) => {
    const first = one.points[0], last = one.points[one.points.length - 1];
    return `${one.label}: ${y.form(first.y)} to ${y.form(last.y)}`;
  }).join('; ');
  const markup = `<svg viewBox="0 0 ${width} ${height}" role="img" tabindex="0"
    aria-label="${escaped(`${title} over ${x.label}. ${told}. Arrow keys read values.`)}">
    <clipPath id="${clip}"><rect x="${MARGIN.left}" y="0" width="${width - MARGIN.left}"
      height="${height - MARGIN.bottom + 3}"/></clipPath>
    ${axesMarkup(across, up, width, height, escaped(x.label))}${reference}${upright}
    <g clip-path="url(#${clip})">${lines.join('')}</g></svg>`;
  return { markup, across, up, series: shown, x, y, height,
    legend: shown.filter((one) => one.points.length).map(keyOf) };
}

/** The line of a legend: its label and the markup of a sample. */
const keyOf = ({ look, dash, label }) =>
  ({ label, mark: `<path class="line ${look} d${dash}" d="M1 6H29"/>` });

/** A legend without switches, or with the box of each line. */
const legendItems = (legend, box = () => '') => legend.map(({ label, mark }, i) =>
  `<li><label>${box(i)}<svg width="30" height="12" aria-hidden="true">${mark}</svg>` +
  `${escaped(label)}</label></li>`).join('');
