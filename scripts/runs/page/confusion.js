// Which classes a network confuses, by `eval`.

function confusionSection(data) {
  const runs = data.runs.filter((run) => run.confusion);
  if (!runs.length) return null;
  const root = section('Confusion', 'Images by label (row) and prediction (column). The shade is ' +
    'the share of the images with this label.');
  const parts = runs.map(({ name, confusion }) => {
    const part = tableOf('confusion', confusion);
    [...part.root.querySelectorAll('tbody tr')].forEach((line, label) =>
      [...line.cells].slice(1).forEach((cell, prediction) =>
        cell.style.setProperty('--share', confusion.shares[label][prediction])));
    part.root.classList.add('shaded');
    const title = name + (confusion.images && `: images of ${confusion.images}`);
    part.root.prepend(element(`<h3>${escaped(title)}</h3>`));
    root.append(part.root);
    return part;
  });
  return { root, exporters: parts.map((part) => part.csv), draw() {} };
}
