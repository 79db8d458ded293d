"use strict";
// This script draws the charts of the page. Every figure holds the description of its chart as JSON, and the chart is
// drawn anew for each choice of the reader. Names and labels become text nodes, so no name can become markup.

const WIDTH = 400, HEIGHT = 270, LEFT = 66, RIGHT = 24, TOP = 12, BOTTOM = 44;
const LEAST = 0.6; // decades of a logarithmic axis: noise around a constant should look like a constant
const FINEST = 0.01; // between two numbers of a linear axis, as a share of the largest value, for the same reason
const ROOM = 0.06; // share of its range that a logarithmic axis adds, so that no line lies on the frame
const root = document.documentElement.dataset; // the choices live here, where the style sheet reads them too

// ---- nodes

function node(made, attributes, children) {
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}
const html = (name, attributes = {}, ...children) => node(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
  node(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// ---- axes: `share` maps a value to its place between 0 and 1, and `ticks` are a few round numbers

function linearAxis(low, high) {
  const rough = Math.max((high - low) / 4, FINEST * Math.max(Math.abs(low), Math.abs(high))) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= 0.999 * rough);
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

// ---- what a chart shows under the choices of the reader

function choice(chart) {
  const averaged = root.iterate === "averaged" && chart.averaged.length > 0;
  const log = root.y === "log" || (root.y === "default" && chart.log_y);
  const lines = (averaged ? chart.averaged : chart.lines).map((line) => pointsOf(line, chart.log_x, log));
  return { averaged, log, lines: lines.filter((line) => line.points.length > 0) };
}

// JSON has null for a number that is not finite; a logarithmic axis has no zero. A band is cut at the lowest mean.
function pointsOf(line, logX, logY) {
  const exists = (value, log) => value !== null && (value > 0 || !log);
  const points = line.x.map((x, n) => ({ x, y: line.y[n], low: line.low[n], high: line.high[n] }))
    .filter((point) => exists(point.x, logX) && exists(point.y, logY));
  const floor = points.reduce((least, point) => Math.min(least, point.y), Infinity);
  for (const point of points.filter((one) => logY && one.low <= 0)) {
    point.low = floor;
  }
  return { ...line, points, banded: line.low.length > 0, colour: line.colour ?? "currentColor" };
}

// ---- drawing

const stroke = (line) => ({ class: "line", stroke: line.colour, "stroke-dasharray": line.dashes.join(" ") || "none" });
const label = (words, x, y, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor }, words);

function frame(chart, across, up, right, down) {
  const floor = HEIGHT - BOTTOM, middle = (TOP + floor) / 2;
  return [
    ...up.ticks.flatMap((tick) => [svg("path", { class: "grid", d: `M${LEFT} ${down(tick)}H${WIDTH - RIGHT}` }),
      label(number(tick), LEFT - 6, down(tick) + 4, "end")]),
    ...across.ticks.flatMap((tick) => [svg("path", { class: "grid", d: `M${right(tick)} ${floor}v4` }),
      label(number(tick), right(tick), floor + 17)]),
    label(chart.x_label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8),
    svg("g", { transform: `translate(12 ${middle}) rotate(-90)` }, label(chart.y_label, 0, 0)),
  ];
}

function plot(chart, lines, log) {
  const across = axis(lines.flatMap((line) => line.points.map((point) => point.x)), chart.log_x);
  const up = axis(lines.flatMap((line) =>
    line.points.flatMap((point) => (line.banded ? [point.y, point.low, point.high] : [point.y]))), log);
  const right = (x) => LEFT + (WIDTH - LEFT - RIGHT) * across.share(x);
  const down = (y) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * up.share(y);
  const path = (points) => points.map(([x, y]) => `${right(x).toFixed(1)},${down(y).toFixed(1)}`).join(" ");
  const bands = lines.filter((line) => line.banded).map(({ colour, points }) => {
    const above = points.map(({ x, high }) => [x, high]), below = points.map(({ x, low }) => [x, low]);
    return svg("polygon", { class: "band", fill: colour, points: path([...above, ...below.reverse()]) });
  });
  const strokes = lines.flatMap((line) => [
    svg("polyline", { ...stroke(line), points: path(line.points.map(({ x, y }) => [x, y])) }),
    ...line.points.filter(() => line.marked)
      .map(({ x, y }) => svg("circle", { fill: line.colour, cx: right(x), cy: down(y), r: 2.5 })),
  ]);
  const words = `${chart.title}: ${chart.y_label} against ${chart.x_label}. ${lines.map(ends).join("; ")}.`;
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, "aria-label": words },
    ...frame(chart, across, up, right, down), ...bands, ...strokes);
  const places = lines.map((line, i) =>
    line.points.map((point, j) => ({ line, point, i, j, x: right(point.x), y: down(point.y) })));
  return reading(chart, drawn, places);
}

function ends(line) {
  const first = line.points[0], last = line.points.at(-1);
  return `${line.name}: ${number(first.y)} at ${number(first.x)}, ${number(last.y)} at ${number(last.x)}`;
}

function legend(lines) {
  const swatch = (line) => svg("svg", { class: "swatch", viewBox: "0 0 34 8", "aria-hidden": true },
    svg("path", { ...stroke(line), d: "M1 4H33" }));
  const band = lines.some((line) => line.banded) ? [html("li", { class: "hint" }, "band: 20 to 80 % of seeds")] : [];
  return html("ul", { class: "legend" }, ...lines.map((line) => html("li", {}, swatch(line), " ", line.name)), ...band);
}

// ---- reading values: the pointer finds the nearest point, and the arrow keys go from point to point

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }; // in points, in lines

function reading(chart, drawn, places) {
  const tip = html("div", { class: "tip", role: "status", hidden: "" });
  const mark = svg("circle", { class: "mark", r: 5, visibility: "hidden" });
  let at = places[0][0];
  const show = (place) => {
    at = place;
    const { line, point, x, y } = place, right = (100 * x) / WIDTH, down = (100 * y) / HEIGHT;
    const band = line.banded ? ` (${number(point.low)} to ${number(point.high)})` : "";
    node(mark, { cx: x, cy: y, stroke: line.colour, visibility: "visible" }, []);
    tip.replaceChildren(html("b", {}, line.name), html("span", {}, `${chart.x_label} ${number(point.x)}`),
      html("span", {}, `${chart.y_label} ${number(point.y)}${band}`));
    tip.style.cssText = (right > 50 ? `right: ${100 - right}%;` : `left: ${right}%;`)
      + (down > 50 ? `bottom: ${100 - down}%` : `top: ${down}%`);
    tip.hidden = false;
  };
  const hide = () => {
    tip.hidden = true;
    mark.setAttribute("visibility", "hidden");
  };
  const nearest = (event) => {
    const box = drawn.getBoundingClientRect(), zoom = WIDTH / box.width;
    const x = (event.clientX - box.left) * zoom, y = (event.clientY - box.top) * zoom;
    const distance = (place) => Math.hypot(place.x - x, place.y - y);
    show(places.flat().reduce((best, place) => (distance(place) < distance(best) ? place : best)));
  };
  const step = (event) => {
    if (event.key === "Escape") {
      hide();
    } else if (event.key in STEPS) {
      event.preventDefault();
      const [points, lines] = STEPS[event.key];
      const own = places[(at.i + lines + places.length) % places.length];
      show(own[Math.min(Math.max(at.j + points, 0), own.length - 1)]);
    }
  };
  const heard = { pointermove: nearest, pointerdown: nearest, pointerleave: hide, blur: hide, keydown: step };
  Object.entries(heard).forEach(([name, listener]) => drawn.addEventListener(name, listener));
  drawn.append(mark);
  return html("div", { class: "plot" }, drawn, tip);
}

// ---- the page

function draw(figure) {
  const chart = JSON.parse(figure.querySelector("script").textContent);
  const { averaged, log, lines } = choice(chart);
  const iterate = averaged ? "averaged iterate" : "last iterate";
  figure.querySelector("small").textContent =
    [...(chart.averaged.length ? [iterate] : []), ...(log ? ["log scale"] : [])].join(", ");
  figure.querySelectorAll(".plot, .legend").forEach((old) => old.remove());
  figure.append(...(lines.length ? [plot(chart, lines, log), legend(lines)]
    : [html("p", { class: "plot hint" }, "nothing above zero: no logarithm to show")]));
}

const drawAll = () => document.querySelectorAll("figure").forEach(draw);
for (const button of document.querySelectorAll("button[data-sets]")) {
  const { sets, choices } = button.dataset, values = choices.split(" ");
  button.addEventListener("click", () => {
    root[sets] = values[(values.indexOf(root[sets]) + 1) % values.length];
    button.querySelector("b").textContent = root[sets];
    drawAll();
  });
}
document.querySelector(".toolbar").hidden = false;
drawAll();

// Paper cannot be unfolded.
addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((block) => {
  block.open = true;
  block.dataset.folded = "";
}));
addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((block) => {
  block.open = false;
  delete block.dataset.folded;
}));
