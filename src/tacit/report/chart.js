"use strict";
// The charts of the static report and of the live page (tacit.ui), drawn from their descriptions (tacit.report.chart).
// Names and labels become text nodes, so no name can become markup.

const WIDTH = 400, HEIGHT = 270, LEFT = 66, RIGHT = 24, TOP = 12, BOTTOM = 44;
const BESIDE = 60; // what a point without a place on the x axis takes of the width
const NAMES = 132, LONGEST = 20; // width of the names of levels, and letters of a name at most
const ROW = 14, MARK = 7; // height of a level without its marks, and of a mark
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

// ---- what a chart shows under the choices of the reader

function choice(chart) {
  const averaged = root.iterate === "averaged" && chart.averaged.length > 0;
  const log = chart.y_ends === null && (root.y === "log" || (root.y === "default" && chart.log_y));
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
  const [y, low, high] = line.missing;
  if (y !== undefined) {
    points.push({ x: null, y, low, high });
  }
  return { ...line, points, banded: line.low.length > 0, colour: line.colour ?? "currentColor" };
}

// ---- drawing

const stroke = (line) => ({ class: "line", stroke: line.colour, "stroke-dasharray": line.dashes.join(" ") || "none" });
const label = (words, x, y, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor }, words);

// a line at zero, where effects are above and below it
const ruled = (chart, tick) => (chart.y_ends !== null && tick === 0 ? "grid zero" : "grid");

function frame(chart, across, up, right, down) {
  const floor = HEIGHT - BOTTOM, middle = (TOP + floor) / 2;
  return [
    ...up.ticks.flatMap((tick) => [
      svg("path", { class: ruled(chart, tick), d: `M${LEFT} ${down(tick)}H${WIDTH - RIGHT}` }),
      label(number(tick), LEFT - 6, down(tick) + 4, "end")]),
    ...across.ticks.flatMap((tick) => [svg("path", { class: "grid", d: `M${right(tick)} ${floor}v4` }),
      label(number(tick), right(tick), floor + 17)]),
    label(chart.y_ends ? shortened(chart.x_label, 2 * LONGEST) : chart.x_label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8),
    svg("g", { transform: `translate(12 ${middle}) rotate(-90)` }, label(chart.y_label, 0, 0)),
  ];
}

function plot(chart, lines, log) {
  const onAxis = lines.map((line) => ({ ...line, points: line.points.filter(({ x }) => x !== null) }));
  const apart = lines.flatMap((line) => line.points.filter(({ x }) => x === null).map((point) => ({ line, point })));
  const placed = onAxis.flatMap((line) => line.points.map((point) => point.x));
  const across = chart.y_ends && !chart.log_x ? tightAxis(placed[0], placed.at(-1)) : axis(placed, chart.log_x);
  const up = chart.y_ends ? tightAxis(...chart.y_ends) : axis(lines.flatMap((line) =>
    line.points.flatMap((point) => (line.banded ? [point.y, point.low, point.high] : [point.y]))), log);
  const width = WIDTH - LEFT - RIGHT - (apart.length ? BESIDE : 0);
  const right = (x) => LEFT + width * across.share(x);
  const beside = (n) => WIDTH - RIGHT - BESIDE / 4 + MARK * (n - (apart.length - 1) / 2);
  const down = (y) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * up.share(y);
  const path = (points) => points.map(([x, y]) => `${right(x).toFixed(1)},${down(y).toFixed(1)}`).join(" ");
  const bands = onAxis.filter((line) => line.banded).map(({ colour, points }) => {
    const above = points.map(({ x, high }) => [x, high]), below = points.map(({ x, low }) => [x, low]);
    return svg("polygon", { class: "band", fill: colour, points: path([...above, ...below.reverse()]) });
  });
  const strokes = onAxis.flatMap((line) => [
    svg("polyline", { ...stroke(line), points: path(line.points.map(({ x, y }) => [x, y])) }),
    ...line.points.filter(() => line.marked)
      .map(({ x, y }) => svg("circle", { fill: line.colour, cx: right(x), cy: down(y), r: 2.5 })),
  ]);
  const marks = apart.flatMap(({ line, point }, n) => {
    const at = beside(n);
    return [...whisker(line, `M${at} ${down(point.low)}V${down(point.high)}`),
      svg("circle", { class: "apart", stroke: line.colour, cx: at, cy: down(point.y), r: 4 })];
  });
  const named = apart.length ? [label("missing", beside((apart.length - 1) / 2), HEIGHT - BOTTOM + 17)] : [];
  const words = `${chart.title}: ${chart.y_label} against ${chart.x_label}. ${onAxis.map(ends).join("; ")}.`;
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, "aria-label": words },
    ...frame(chart, across, up, right, down), ...bands, ...strokes, ...marks, ...named);
  const places = lines.map((line, i) =>
    line.points.map((point, j) =>
      ({ line, point, i, j, x: point.x === null ? beside(i) : right(point.x), y: down(point.y) })));
  return reading(chart, drawn, places, HEIGHT);
}

const whisker = (line, d) => (line.banded ? [svg("path", { class: "whisker", stroke: line.colour, d })] : []);

// Levels stand below one another, where their names have room; the effect of a level goes to the right or to the left.
function levelPlot(chart, lines) {
  const row = ROW + MARK * lines.length, height = TOP + row * chart.levels.length + BOTTOM, floor = height - BOTTOM;
  const across = tightAxis(...chart.y_ends);
  const right = (y) => NAMES + (WIDTH - NAMES - RIGHT) * across.share(y);
  const middle = (level) => TOP + row * (level + 0.5);
  const down = (level, i) => middle(level) + MARK * (i - (lines.length - 1) / 2);
  const grid = across.ticks.flatMap((tick) => [
    svg("path", { class: ruled(chart, tick), d: `M${right(tick)} ${TOP}V${floor + 4}` }),
    label(number(tick), right(tick), floor + 17)]);
  const names = chart.levels.map((name, level) => node(
    label(shortened(name), NAMES - 8, middle(level) + 4, "end"), {}, [svg("title", {}, name)]));
  const marks = lines.flatMap((line, i) => line.points.flatMap(({ x, y, low, high }) => [
    ...whisker(line, `M${right(low)} ${down(x, i)}H${right(high)}`),
    svg("path", { class: "stem", stroke: line.colour, d: `M${right(0)} ${down(x, i)}H${right(y)}` }),
    svg("circle", { fill: line.colour, cx: right(y), cy: down(x, i), r: 4 })]));
  const told = lines.flatMap((line) => line.points.map(({ x, y }) => `${chart.levels[x]} ${number(y)}`));
  const drawn = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", tabindex: 0,
    "aria-label": `${chart.title}: ${chart.y_label}. ${told.join("; ")}.` },
    ...grid, ...names, label(chart.y_label, (NAMES + WIDTH - RIGHT) / 2, height - 8), ...marks);
  const places = lines.map((line, i) =>
    line.points.map((point, j) => ({ line, point, i, j, x: right(point.y), y: down(point.x, i) })));
  return reading(chart, drawn, places, height);
}

const shortened = (name, most = LONGEST) => {
  const letters = [...name];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
};

function ends(line) {
  const first = line.points[0], last = line.points.at(-1);
  return `${line.name}: ${number(first.y)} at ${number(first.x)}, ${number(last.y)} at ${number(last.x)}`;
}

function legend(chart, lines) {
  const swatch = (line) => svg("svg", { class: "swatch", viewBox: "0 0 34 8", "aria-hidden": true },
    svg("path", { ...stroke(line), d: "M1 4H33" }));
  const named = lines.map((line) => html("li", {}, swatch(line), " ", line.name));
  if (chart.y_ends) { // the set says what a single line is, and what a band is
    return lines.length > 1 ? html("ul", { class: "legend" }, ...named) : "";
  }
  const band = lines.some((line) => line.banded) ? [html("li", { class: "hint" }, "band: 20 to 80 % of seeds")] : [];
  return html("ul", { class: "legend" }, ...named, ...band);
}

// ---- reading values: the pointer finds the nearest point, and the arrow keys go from point to point

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }; // in points, in lines

// a tip at a place, both in percent of the drawing, on the side that has room for it
function showAt(tip, right, down) {
  tip.style.cssText = (right > 50 ? `right: ${100 - right}%;` : `left: ${right}%;`)
    + (down > 50 ? `bottom: ${100 - down}%` : `top: ${down}%`);
  tip.hidden = false;
}

function spelled(chart, x) {
  if (chart.levels.length) {
    return chart.levels[x];
  }
  return x === null ? "missing" : number(x);
}

function reading(chart, drawn, places, height) {
  const tip = html("div", { class: "tip", role: "status", hidden: "" });
  const mark = svg("circle", { class: "mark", r: 5, visibility: "hidden" });
  let at = places[0][0];
  const show = (place) => {
    at = place;
    const { line, point, x, y } = place, right = (100 * x) / WIDTH, down = (100 * y) / height;
    const band = line.banded ? ` (${number(point.low)} to ${number(point.high)})` : "";
    node(mark, { cx: x, cy: y, stroke: line.colour, visibility: "visible" }, []);
    const odds = chart.odds ? [html("span", {}, `odds times ${number(Number(Math.exp(point.y).toPrecision(3)))}`)] : [];
    const name = line.name === chart.x_label ? [] : [html("b", {}, line.name)];
    tip.replaceChildren(...name, html("span", {}, `${chart.x_label} ${spelled(chart, point.x)}`),
      html("span", {}, `${chart.y_label} ${number(point.y)}${band}`), ...odds);
    showAt(tip, right, down);
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

// ---- a figure

// Draws a chart, from its description, into a figure whose caption holds a small element for what is chosen.
function drawChart(figure, chart) {
  const { averaged, log, lines } = choice(chart);
  const iterate = averaged ? "averaged iterate" : "last iterate";
  const choosable = chart.averaged.length && (averaged || chart.y_ends === null); // a set says once what is usual
  figure.querySelector("small").textContent =
    [...(choosable ? [iterate] : []), ...(log ? ["log scale"] : []), ...(chart.note ? [chart.note] : [])].join(", ");
  figure.querySelectorAll(".plot, .legend").forEach((old) => old.remove());
  const drawn = () => (chart.levels.length ? levelPlot(chart, lines) : plot(chart, lines, log));
  figure.append(...(lines.length ? [drawn(), legend(chart, lines)]
    : [html("p", { class: "plot hint" }, "nothing above zero: no logarithm to show")]));
}

// Lets the buttons of a toolbar set choices of the reader on the root element; `redraw` is called after each.
function listenToChoices(redraw) {
  for (const button of document.querySelectorAll("button[data-sets]")) {
    const { sets, choices } = button.dataset, values = choices.split(" ");
    button.addEventListener("click", () => {
      root[sets] = values[(values.indexOf(root[sets]) + 1) % values.length];
      button.querySelector("b").textContent = root[sets];
      redraw();
    });
  }
}
