// Scales: from values to pixels.

/** An axis from low to high on pixels from..to: what is given, at(value), about `count` ticks, at
 * whole numbers only if `whole` and one is passed, at round numbers of bytes if `binary`. */
function scaleOf({ low, high, from, to, log, count, whole, binary, form }) {
  const map = log ? Math.log10 : (value) => value;
  const a = map(low), b = map(high);
  const at = (value) => from + (to - from) * (map(value) - a) / (b - a);
  return { at, from, to, log, form, ticks: log ? logTicks(low, high, count, binary)
    : linearTicks(low, high, count, { least: whole && high >= 1 ? 1 : 0, binary }) };
}

/** Multiples of 1, 2 or 5 times a power of ten, at least `least` apart; of bytes in their unit. */
function linearTicks(low, high, count, { least = 0, binary } = {}) {
  if (binary) {
    const unit = 1024 ** byteUnit(high);
    return linearTicks(low / unit, high / unit, count).map((value) => value * unit);
  }
  const rough = Math.max(least, 0.8 * (high - low) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
    ticks.push(+(i * step).toPrecision(12));
  return ticks;
}

/** Powers of ten, with 2 and 5 between them where there is room; linear ones within an octave. Of
 * bytes 1, 10 and 100 of each unit. */
function logTicks(low, high, count, binary) {
  const decades = Math.log10(high / low);
  if (decades < 0.5) return linearTicks(low, high, count, { binary });
  const thousands = (power) => (binary ? 1.024 ** Math.floor(power / 3) : 1);  // 1024 or 1000
  const factors = decades * 3 <= count * 1.5 ? [1, 2, 5] : [1];
  const every = factors.length > 1 ? 1 : Math.max(1, Math.ceil(decades / count));
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    for (const factor of factors) {
      const value = +(factor * 10 ** power * thousands(power)).toPrecision(12);
      if (power % every === 0 && value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
    }
  return ticks.length > 1 ? ticks : linearTicks(low, high, count, { binary });
}

/** The range of values with some space around it; `from` is part of it if given. */
function domainOf(values, { log, from, space = 0.04 }) {
  const used = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (!log && from !== undefined) used.push(from);
  if (!used.length) return null;
  let low = used.reduce((a, b) => Math.min(a, b)), high = used.reduce((a, b) => Math.max(a, b));
  if (log) {
    const ratio = high / low < 1.05 ? 1.1 : (high / low) ** space;
    return { low: low / ratio, high: high * ratio };
  }
  const room = high > low ? (high - low) * space : Math.abs(high) * 0.05 || 1;
  if (low !== from) low -= room;
  return { low, high: high + room };
}
