// From the data of runs to the series of charts.

const markOf = (run) => run.state === 'finished' ? '' : ` (${run.state})`;

/** What is drawn as one line: a group of seeds, or with single seeds each run. */
function units(data, single) {
  return data.groups.flatMap((group, i) => {
    const look = `c${i % 8}`, far = Math.floor(i / 8);
    const runs = group.runs.map((number) => data.runs[number]);
    if (!single || runs.length === 1) {
      const marks = [...new Set(runs.map(markOf))].join('');
      const seeds = runs.length > 1 ? ` (${runs.length} seeds)` : '';
      return [{ label: group.label + seeds + marks, look, dash: far % 4, runs,
        of: runs.length > 1 ? group : runs[0] }];
    }
    return runs.map((run, k) => ({ label: `${group.label}, seed ${run.seed}${markOf(run)}`,
      look, dash: (far + k) % 4, runs: [run], of: run }));
  });
}

/** The series of a column. */
const seriesOf = (drawn, column, axis) => drawn.map((unit) => {
  const { mean, low = mean, high = mean, seeds, ...axes } = unit.of.curves[column];
  const points = mean.map((y, i) =>
    ({ x: axes[axis][i], y, low: low[i], high: high[i], seeds: seeds?.[i] ?? 1 }));
  return { ...unit, column, points: points.filter(({ x, y }) => x !== null && y !== null) };
});

/** Whether the totals of the runs are so far apart that only logarithms show all of them. */
function farApart(data, axis) {
  const ends = data.runs.map((run) => run.curves.train_loss[axis].at(-1)).filter((end) => end > 0);
  return ends.length > 1 && Math.max(...ends) > 20 * Math.min(...ends);
}
