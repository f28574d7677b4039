// The values at a position of a line chart: under the pointer, or moved by arrow keys.

/** Connects the SVG of a chart with the line of text below it. */
function addCursor(svg, chart, readout) {
  const { across, up, x, y } = chart;
  const drawn = chart.series.filter((one) => one.points.length);
  const stops = [...new Set(drawn.flatMap((one) => one.points.map((point) => point.x)))]
    .sort((a, b) => a - b);
  const line = element(`<svg><line class="cursor" y1="${MARGIN.top}" visibility="hidden"
    y2="${chart.height - MARGIN.bottom}"/></svg>`).firstElementChild;
  svg.append(line);
  let current = -1;

  const nearest = (points, value) => points.reduce((best, point) =>
    Math.abs(point.x - value) < Math.abs(best.x - value) ? point : best);
  const show = (index) => {
    current = Math.max(0, Math.min(stops.length - 1, index));
    const value = stops[current], at = across.at(value);
    line.setAttribute('x1', at);
    line.setAttribute('x2', at);
    line.setAttribute('visibility', 'visible');
    const near = drawn.map((one) => ({ one, point: nearest(one.points, value) }))
      .filter(({ point }) => Math.abs(across.at(point.x) - at) < 12)
      .sort((a, b) => up.at(a.point.y) - up.at(b.point.y));
    readout.textContent = `${x.label} ${x.form(value)}: ` +
      near.map(({ one, point }) => `${one.label} ${y.form(point.y)}`).join(', ');
  };
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    show(stops.reduce((best, value, i) => Math.abs(across.at(value) - at) <
      Math.abs(across.at(stops[best]) - at) ? i : best, 0));
  });
  svg.addEventListener('keydown', (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20,
      Home: -stops.length, End: stops.length }[event.key];
    if (!move) return;
    event.preventDefault();
    show(current + move);
  });
}
