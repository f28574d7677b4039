// Builds the page and draws it again when a control or the width changes.

function main() {
  const data = JSON.parse(document.getElementById('data').textContent);
  document.getElementById('made').textContent = `Written ${data.made}.`;
  document.getElementById('groups').innerHTML = data.groups.map(({ label, runs }) =>
    `<li>${escaped(label)}${runs.length > 1 ? ` (${runs.length} seeds)` : ''}</li>`).join('');
  document.getElementById('notes').innerHTML =
    data.notes.map((note) => `<li>⚠ ${escaped(note)}</li>`).join('');
  const controls = controlsOf(data);
  const curves = curvesSection(data);
  const sections = [runsSection(data), curves, timeSection(data), entriesSection(data),
    distributionSection(data), confusionSection(data),
    ...data.advice.map(predictionSection)].filter(Boolean);
  document.getElementById('sections').append(...sections.map((one) => one.root));

  let printing = false;
  const draw = () => {
    const view = { ...controls.view(), printing };
    document.documentElement.dataset.theme = view.theme;
    legend.draw(view);
    for (const one of sections) one.draw(view);
    return view;
  };
  const showNumbers = (open) => sections.forEach((one) =>
    one.exporters.forEach((box) => box.show(open)));
  const legend = legendOf(data, draw);
  curves.root.insertBefore(legend.root, curves.root.lastElementChild);

  let numbers = false;
  const update = () => {
    const view = draw();
    if (view.numbers !== numbers) showNumbers(numbers = view.numbers);
  };
  controls.load();
  controls.onChange(update);
  update();

  let width = document.body.clientWidth;
  window.addEventListener('resize', () => {
    if (document.body.clientWidth !== width) draw();
    width = document.body.clientWidth;
  });
  let folded = [];
  window.addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open])')];
    for (const fold of folded) fold.open = true;
    printing = true;
    draw();
  });
  window.addEventListener('afterprint', () => {
    for (const fold of folded) fold.open = false;
    printing = false;
    draw();
  });
}

main();
