// Tables.

const isNumeric = (text) => /^[−-]?\d[\d.,e+−-]*( ?[kMGT]?B)?( ± .*)?$/.test(text);

/** A table with its CSV; without `numeric`, all texts are to the left, and print has columns. */
function tableOf(name, { names, rows, csv }, numeric = true) {
  const right = names.map((_, i) => numeric &&
    rows.every((row) => row[i] === '–' || isNumeric(row[i])));
  const cells = (tag, row) => row.map((cell, i) =>
    `<${tag}${tag === 'th' ? ' scope="col"' : ''}${right[i] ? ' class="number"' : ''}>` +
    `${escaped(cell).replaceAll('_', '_<wbr>')}</${tag}>`).join('');
  const state = names.indexOf('state');
  const lines = rows.map((row) => {
    const open = state >= 0 && !/^(\d+ )?finished$/.test(row[state]);
    return `<tr${open ? ' class="unfinished"' : ''}>${cells('td', row)}</tr>`;
  });
  const root = element(`<div class="table${numeric ? '' : ' settings'}">
    <div class="scroll" tabindex="0" role="region" aria-label="${escaped(name)}">
    <table><thead><tr>${cells('th', names)}</tr></thead>
    <tbody>${lines.join('')}</tbody></table></div></div>`);
  const csvBox = exporter(name, () => csv);
  root.append(csvBox.root);
  const scroll = root.firstElementChild, more = element('<span class="note more"></span>');
  csvBox.root.append(more);
  const look = () => {  // a scroll bar may be invisible
    const end = scroll.scrollLeft + scroll.clientWidth + 1;
    const hidden = [...scroll.querySelectorAll('th')].filter((th) =>
      th.offsetLeft + th.offsetWidth > end).length;
    root.classList.toggle('cut', hidden > 0);
    more.textContent = hidden ? `columns to the right: ${hidden} →` : '';
  };
  scroll.addEventListener('scroll', look);
  new ResizeObserver(look).observe(scroll);
  return { root, csv: csvBox };
}
