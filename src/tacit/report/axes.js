"use strict";
// The axes of a chart: `share` maps a value to its place between 0 and 1, and `ticks` are a few round numbers.

const LEAST = 0.6; // decades of a logarithmic axis: noise around a constant should look like a constant
const FINEST = 0.01; // between two numbers of a linear axis, as a share of the largest value, for the same reason
const ROOM = 0.06; // share of its range that a logarithmic axis adds, so that no line lies on the frame

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= 0.999 * rough);
}

function linearAxis(low, high) {
  const step = roundStep(Math.max((high - low) / 4, FINEST * Math.max(Math.abs(low), Math.abs(high))) || 1);
  const first = Math.floor(low / step), last = Math.max(Math.ceil(high / step), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, n) => (first + n) * step);
  return { ticks, share: (value) => (value / step - first) / (last - first) };
}

function logAxis(low, high) {
  const span = Math.log10(high / low);
  const room = Math.max(ROOM * span, LEAST - span) / 2;
  const bottom = Math.log10(low) - room, top = Math.log10(high) + room;
  const powers = Array.from({ length: Math.ceil(top) - Math.floor(bottom) + 1 }, (_, n) => Math.floor(bottom) + n);
  const choices = [[1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]].map((factors) =>
    powers.flatMap((power) => factors.map((factor) => Number(`${factor}e${power}`)))
      .filter((tick) => bottom <= Math.log10(tick) && Math.log10(tick) <= top));
  const ticks = choices.find((found) => found.length >= 3) ?? choices.at(-1);
  const every = Math.ceil(ticks.length / 8);
  return {
    ticks: ticks.filter((_, n) => n % every === 0),
    share: (value) => (Math.log10(value) - bottom) / (top - bottom),
  };
}

// An axis that ends where its values end: the charts of a set hold the same values, and need no round ends.
function tightAxis(low, high) {
  const step = roundStep((high - low) / 6);
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, n) => (first + n) * step),
    share: (value) => (value - low) / (high - low),
  };
}

function axis(values, log) {
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  return log ? logAxis(low, high) : linearAxis(low, high);
}

function number(value) {
  const size = Math.abs(value);
  return size === 0 || (size >= 1e-3 && size < 1e5)
    ? String(Number(value.toPrecision(5)))
    : Number(value.toPrecision(3)).toExponential().replace("e+", "e");
}
