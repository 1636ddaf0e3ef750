// A curve in memory: what the server sent, and what came since.

/** How many points a curve may have before they are put together again. */
const MOST = 4000;

/** A curve from what the server sent. */
export function curve(sent) {
  const { name, x, y, last } = sent;
  return { name, x: [...x], y: [...y], low: sent.low ? [...sent.low] : null, high: sent.high ? [...sent.high] : null, last };
}

/** Adds points `[step, time, value]` as they were pushed; those that are known already are passed over. `at` says where a
 *  point lies. A run that went back to a checkpoint tells steps again: what was later than the first of them goes. */
export function extend(one, points, at) {
  const known = one.last ? one.last[1] : -Infinity;
  const fresh = points.filter(([, time, value]) => time > known && Number.isFinite(value));
  if (!fresh.length) return false;
  const from = at(fresh[0]);
  let end = one.x.length;
  while (end > 0 && one.x[end - 1] >= from) end -= 1;
  for (const list of [one.x, one.y, one.low, one.high]) if (list) list.length = end;
  for (const point of fresh) {
    one.x.push(at(point));
    one.y.push(point[2]);
    one.low?.push(point[2]);
    one.high?.push(point[2]);
  }
  one.last = fresh[fresh.length - 1];
  if (one.x.length > MOST) halve(one);
  return true;
}

function halve(one) {
  const size = Math.ceil(one.x.length / 2);
  const [low, high] = [one.low ?? [...one.y], one.high ?? [...one.y]];
  for (let to = 0; to < size; to += 1) {
    const [a, b] = [to * 2, Math.min(to * 2 + 1, one.x.length - 1)];
    one.x[to] = one.x[b];
    one.y[to] = (one.y[a] + one.y[b]) / 2;
    low[to] = Math.min(low[a], low[b]);
    high[to] = Math.max(high[a], high[b]);
  }
  [one.low, one.high] = [low, high];
  for (const list of [one.x, one.y, low, high]) list.length = size;
}

/** A mean that forgets: `weight` of what was before stays, in each step of an even curve. It begins without a lean to the
 *  first value. */
export function smooth(values, weight) {
  if (!weight) return values;
  let sum = 0, whole = 0;
  return values.map((value) => {
    sum = sum * weight + value * (1 - weight);
    whole = whole * weight + (1 - weight);
    return sum / whole;
  });
}

/** The number of the point that is nearest to a place. */
export function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle; else high = middle;
  }
  return Math.abs(xs[low] - x) <= Math.abs(xs[high] - x) ? low : high;
}
