// Ticks at round numbers, and where a value lies.

const DAY = 86400;
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY];

/** The next round number: 1, 2 or 5 with zeros. */
function decimal(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 10 * power;
}

// What is round depends on what is measured.
const ROUND = {
  number: decimal,
  count: (rough) => Math.max(1, decimal(rough)),
  seconds: (rough) => (rough <= 1 ? decimal(rough) : SECONDS.find((one) => one >= rough) ?? DAY * decimal(rough / DAY)),
  bytes: (rough) => 2 ** Math.ceil(Math.log2(rough)),
};

/** Round numbers from `low` to `high`, about `wanted` of them: of a `number`, a `count`, `seconds` or `bytes`. */
export function ticks(low, high, wanted, kind = "number") {
  const span = high - low;
  if (!(span > 0)) return [low];
  const step = ROUND[kind](span / Math.max(1, wanted));
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
