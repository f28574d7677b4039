// From the data of runs to the series of charts.

/** The points of several seeds as one: mean, least and greatest of those that reached the point. */
function merged(curves, axis) {
  const found = new Map();
  for (const curve of curves)
    curve.key.forEach((key, i) => {
      if (curve[axis][i] === null || curve.mean[i] === null) return;  // not finite
      const at = found.get(key) ?? { x: 0, y: 0, low: Infinity, high: -Infinity, seeds: 0 };
      at.x += curve[axis][i];
      at.y += curve.mean[i];
      at.low = Math.min(at.low, (curve.low ?? curve.mean)[i]);
      at.high = Math.max(at.high, (curve.high ?? curve.mean)[i]);
      at.seeds += 1;
      found.set(key, at);
    });
  return [...found].sort((a, b) => a[0] - b[0]).map(([, at]) =>
    ({ ...at, x: at.x / at.seeds, y: at.y / at.seeds }));
}

const markOf = (run) => run.state === 'finished' ? '' : ` (${run.state})`;

/** What is drawn as one line: a group of seeds, or with single seeds each run. */
function units(data, single) {
  return data.groups.flatMap((group, i) => {
    const look = `c${i % 8}`, far = Math.floor(i / 8);
    const runs = group.runs.map((number) => data.runs[number]);
    if (!single || runs.length === 1) {
      const marks = [...new Set(runs.map(markOf))].join('');
      const seeds = runs.length > 1 ? ` (${runs.length} seeds)` : '';
      return [{ label: group.label + seeds + marks, look, dash: far % 4, runs }];
    }
    return runs.map((run, k) => ({ label: `${group.label}, seed ${run.seed}${markOf(run)}`,
      look, dash: (far + k) % 4, runs: [run] }));
  });
}

/** The series of a column. */
const seriesOf = (drawn, column, axis) => drawn.map((unit) => ({ ...unit, column,
  points: merged(unit.runs.map((run) => run.curves[column]), axis) }));

/** Mean seconds by phase of the runs of a unit that finished an epoch. */
function phasesOf(unit) {
  const every = unit.runs.map((run) => run.phases).filter((parts) => parts.data !== undefined);
  return Object.fromEntries(every.length ? PHASES.map((phase) =>
    [phase, every.reduce((sum, parts) => sum + parts[phase], 0) / every.length]) : []);
}

/** Whether the totals of the runs are so far apart that only logarithms show all of them. */
function farApart(data, axis) {
  const ends = data.runs.map((run) => run.curves.train_loss[axis].at(-1)).filter((end) => end > 0);
  return ends.length > 1 && Math.max(...ends) > 20 * Math.min(...ends);
}
