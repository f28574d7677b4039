'use strict';
// Texts: numbers, bytes, escaped markup.

const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** Four digits; 12k for thousands from 10,000 on. */
function short(value) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  if (size && size < 1e-3) return (+value.toPrecision(3)).toExponential().replace('e-', 'e−');
  return String(+value.toPrecision(4));
}

/** The power of 1024 below a size, from 0 to 4. */
function byteUnit(size) {
  let unit = 0;
  while (unit < 4 && size >= 1024 ** (unit + 1)) ++unit;
  return unit;
}

function bytesText(value) {
  const i = byteUnit(Math.abs(value));
  return `${+(value / 1024 ** i).toPrecision(4)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][i]}`;
}

// the choices of the horizontal axis: key in the data, label, form of a value
const AXES = {
  epoch: { key: 'epoch', label: 'epochs', form: short, whole: true },
  step: { key: 'step', label: 'steps', form: short, whole: true },
  seconds: { key: 'seconds', label: 'seconds of training', form: short },
  bytes: { key: 'bytes_sent', label: 'bytes sent, all ranks', form: bytesText,
    binary: true },
};

/** An element from markup. SVG inside of HTML needs no namespace. */
function element(markup) {
  const template = document.createElement('template');
  template.innerHTML = markup.trim();
  return template.content.firstElementChild;
}
