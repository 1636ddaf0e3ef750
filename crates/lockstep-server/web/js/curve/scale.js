// Ticks at round numbers, and where a value lies.

/** Round numbers from `low` to `high`, about `wanted` of them. */
export function ticks(low, high, wanted) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 10 * power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) {
    found.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  }
  return found;
}

/** Powers of ten from `low` to `high`; with few of them also their doubles and fives. */
export function logTicks(low, high) {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const parts = to - from > 6 ? [1] : to - from > 2 ? [1, 3] : [1, 2, 5];
  const found = [];
  for (let power = from; power <= to; power += 1) {
    for (const one of parts) found.push(one * 10 ** power);
  }
  const inside = found.filter((one) => one >= low * .999 && one <= high * 1.001);
  return inside.length > 1 ? inside : ticks(low, high, 4).filter((one) => one > 0);
}

/** A scale from values to places. */
export function scale([low, high], [from, to], log) {
  const at = log ? Math.log : (value) => value;
  const [first, span] = [at(low), at(high) - at(low) || 1];
  const place = (value) => from + (at(value) - first) / span * (to - from);
  place.back = (where) => {
    const value = first + (where - from) / (to - from) * span;
    return log ? Math.exp(value) : value;
  };
  return place;
}
