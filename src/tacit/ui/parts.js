"use strict";
// What the views are made of: questions to the server, and pieces of the page. Everything that a file says becomes a
// text node (html and svg of chart.js): no string is ever parsed as markup.

// ---- questions

const KEY = "tacit-token";
const asked = new Map(); // by address: the tag of the last answer, and the answer

class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

// Answers with the very same object where nothing has changed, so that a view sees at once that it has nothing to do.
async function ask(path, parameters = {}, method = "GET") {
  const query = new URLSearchParams();
  Object.entries(parameters).forEach(([name, value]) => [value].flat().forEach((one) => query.append(name, one)));
  const address = `api/${path}?${query}`, known = asked.get(address);
  const headers = { "X-Tacit-Token": sessionStorage.getItem(KEY) ?? "" };
  if (known && method === "GET") {
    headers["If-None-Match"] = known.tag;
  }
  const answer = await fetch(address, { method, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  if (answer.status === 304) {
    return known.told;
  }
  const told = await answer.json();
  if (!answer.ok) {
    throw new Refused(answer.status, told.error);
  }
  if (asked.size > 200) {
    asked.clear();
  }
  asked.set(address, { tag: answer.headers.get("etag"), told });
  return told;
}

// ---- words

const upward = (epsilon) => String(Number((Math.ceil(epsilon * 1e4 - 1e-6) / 1e4).toPrecision(6)));
const tiny = (value) => (value > 0 && value < 1e-3 ? value.toExponential() : String(value));
const budget = (epsilon, delta) =>
  (epsilon === null ? "–" : delta === null ? upward(epsilon) : `${upward(epsilon)}, δ ${tiny(delta)}`);

function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  if (!seconds || past < 0) {
    return seconds ? "now" : "–";
  }
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([length]) => past >= length) ?? [1, "s"];
  return `${Math.floor(past / size)} ${unit} ago`;
}

function lasting(seconds) {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min`
    : `${(seconds / 3600).toFixed(1)} h`;
}

// ---- pieces

const KINDS = { private: "private", "simulated noise": "simulated", weak: "bare", "not private": "bare",
  "guarantee not stated": "bare", unreadable: "bare" };
const badge = (words) => html("strong", { class: `badge ${KINDS[words] ?? "simulated"}` }, words);
const pill = (state) => html("span", { class: "pill", "data-state": state }, state || "–");
const link = (words, hash, more = {}) => html("a", { href: `#/${hash}`, ...more }, words);
const hint = (...words) => html("p", { class: "hint" }, ...words);
const section = (title, ...content) => html("section", {}, html("h2", {}, title), ...content);
const folded = (title, ...content) => html("details", {}, html("summary", {}, title), ...content);
const factList = (pairs) =>
  html("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));

function table(caption, columns, rows) {
  const head = html("tr", {}, ...columns.map((name) => html("th", { scope: "col" }, name)));
  const body = rows.map(([first, ...rest]) => html("tr", {}, html("th", { scope: "row" }, first),
    ...rest.map((cell, n) => html("td", { "data-label": columns[n + 1] }, html("span", {}, cell)))));
  return html("div", { class: "wide", role: "region", "aria-label": caption, tabindex: 0 },
    html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...body)));
}

// A bar from 0 to `most`; what was asked for but never came is drawn fainter behind it.
function bar(value, most, isLimit, atMost = null) {
  const share = (one) => Math.max(0, Math.min(100, most > 0 ? (100 * one) / most : 0));
  // near a limit the next run is refused; to spend what was agreed on is as it should be
  const level = !isLimit ? "fine" : value >= 0.999 * most ? "full" : value >= 0.8 * most ? "high" : "fine";
  const behind = atMost === null ? [] : [svg("rect", { class: "behind", width: share(atMost), height: 10 })];
  return svg("svg", { class: `gauge ${level}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img",
    "aria-label": `${upward(value)} of ${upward(most)}` }, svg("rect", { class: "track", width: 100, height: 10 }),
    ...behind, svg("rect", { class: "level", width: share(value), height: 10 }));
}

function gaugeCard(gauge) {
  const { agent, epsilon, most, dp_delta: delta, releases, runs } = gauge;
  const of = most === null ? "" : ` of ${upward(most)}${gauge.is_limit ? " allowed" : " agreed"}`;
  const told = [`${releases ?? 0} releases`,
    ...(runs.length ? [`${runs.length} run${runs.length > 1 ? "s" : ""}`] : []),
    ...(gauge.until ? [`last ${ago(Date.parse(gauge.until) / 1000)}`] : []),
    ...Object.entries(gauge.counts ?? {}).map(([name, count]) => `${name} ${count}`),
    ...(gauge.reason ? [gauge.reason] : [])];
  const from = gauge.data_id && gauge.data_id !== agent ? [gauge.data_id] : [];
  return html("li", { class: "agent" }, html("div", { class: "spread" }, html("b", {}, agent),
    html("span", {}, epsilon === null ? "–" : `ε ${upward(epsilon)}${of}`)),
    ...(most === null || epsilon === null ? [] : [bar(epsilon, most, gauge.is_limit, gauge.at_most ?? null)]),
    html("small", {}, [...from, ...(delta === null ? [] : [`δ ${tiny(delta)}`]), ...told].join(" · ")));
}

// Shows charts in a grid. A chart whose numbers are the same stays as it is, and so does one that is being read.
function showCharts(grid, charts) {
  const old = new Map([...grid.children].map((figure) => [figure.dataset.key, figure]));
  const figures = charts.map((chart) => {
    const figure = old.get(chart.key) ?? html("figure", { "data-key": chart.key },
      html("figcaption", {}, html("span"), " ", html("small")));
    const words = JSON.stringify(chart), read = figure.querySelector(".tip:not([hidden])");
    if (figure.words !== words && !read) {
      const focused = figure.contains(document.activeElement);
      figure.words = words;
      figure.chart = chart;
      figure.querySelector("figcaption span").textContent = chart.title;
      drawChart(figure, chart);
      if (focused) {
        figure.querySelector("svg[tabindex]")?.focus();
      }
    }
    return figure;
  });
  if (figures.length !== grid.children.length || figures.some((figure, n) => figure !== grid.children[n])) {
    grid.replaceChildren(...figures);
  }
}

const chartGrid = (columns = 2) => html("div", { class: `charts columns-${columns}` });
