"use strict";
// The sections of a view that are made of what the server says of a run, a sweep or a federation.

const short = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(4))));

function showInside(place, told) {
  const columns = ["run", "state", "method", "epsilon", "result", "updated"];
  const cells = (row) => [link(row.name, `item/${row.id}`), standing(row), row.algorithm, budget(row.epsilon, null),
    row.shown, ago(row.updated)];
  const runs = () => section("Runs", table("The latest first", columns, told.runs.map(cells)));
  place.replaceChildren(...(told.runs.length ? [runs()] : []));
}

function showComparison(place, found, told) {
  if (!found.comparison.length) {
    return;
  }
  const columns = ["runs", "method", "data", "guarantee", "epsilon", "rounds", "seeds", "result"];
  const result = ({ test_error: error, test_rmse: rmse }) =>
    (error === null || error === undefined ? short(rmse) : `${(100 * error).toFixed(2)}%`);
  const cells = (row) => [row.runs, row.algorithm, row.data ?? "–", badge(row.label), budget(row.epsilon, null),
    String(row.rounds), String(row.seeds), result(row)];
  const many = "These are too many runs for one set of charts: choose some in the list, and compare them.";
  place.replaceChildren(section("Means over seeds",
    table(found.title ?? told.row.name, columns, found.comparison.map(cells)), ...(found.many ? [hint(many)] : [])));
}

function showBoards(place, boards) {
  const list = (items) => html("ul", { class: "hint" }, ...items.map((words) => html("li", {}, ...[words].flat())));
  const budgets = ({ caption, head, lines, guarantees }) => [
    table(caption, head, lines.map((line) => [...line.slice(0, -1), badge(line.at(-1))])),
    list(guarantees.map(([names, words]) => [html("b", {}, `${names}: `), words]))];
  place.replaceChildren(...boards.map(({ title, tables, remarks }) =>
    section(title, ...tables.flatMap(budgets), list(remarks))));
}

const COUNTED = "As the coordinator counts. The ledgers of the agents are with the agents: they may hold up to what is "
  + "drawn faintly.";

function showBudgets(place, found, row) {
  if (!found.gauges.length && !found.unread.length && !found.where) {
    place.replaceChildren();
    return;
  }
  if (!place.querySelector(".charts")) {
    const meaning = row.kind === "federation" ? COUNTED
      : "From the ledgers of the agents: all runs on the same data, composed.";
    place.replaceChildren(section("Budget of each agent", hint(meaning), html("ul", { class: "agents" }),
      html("ul", { class: "unread hint" }), chartGrid(3)));
  }
  place.querySelector(".agents").replaceChildren(...found.gauges.map(gaugeCard));
  place.querySelector(".unread").replaceChildren(
    ...found.unread.map(({ ledger, reason }) => html("li", {}, html("b", {}, ledger), ` ${reason}`)),
    ...(found.more ? [html("li", {}, `${found.more} more ledgers are not read.`)] : []),
    ...(found.where && !found.gauges.length ? [html("li", {}, found.where)] : []));
  showCharts(place.querySelector(".charts"), found.charts);
}

function showEffects(place, effects) {
  const title = "What the model has learnt";
  if (!effects || !effects.charts.length) {
    const why = () => section(title, hint(`The effect of each column is not drawn: ${effects.reason}`));
    place.replaceChildren(...(effects?.reason ? [why()] : []));
    return;
  }
  const [against, of] = effects.classes, drawn = effects.charts.length;
  const adds = effects.log_odds ? `the log-odds of ${of} against ${against}: +0.69 doubles the odds` : "the score";
  const meaning = `A chart shows what each value of a column adds to ${adds}. Zero is the mean over the declared `
    + "values; all charts have one scale, the largest effect first. The band shows how far the noise for privacy alone "
    + "can have moved an effect.";
  const grid = chartGrid(3);
  place.replaceChildren(section(title, html("p", {}, meaning),
    ...(drawn < effects.all ? [hint(`${drawn} of ${effects.all} columns are drawn.`)] : []),
    ...(effects.undrawn.length ? [hint(`Effects that cannot be drawn: ${effects.undrawn.join(", ")}.`)] : []), grid));
  showCharts(grid, effects.charts);
}

function showAudit(place, audit) {
  if (!audit) {
    place.replaceChildren();
    return;
  }
  const cells = (one) => [[one.attack, one.name].filter(Boolean).join(": "), short(one.claimed), short(one.measured),
    one.verdict];
  const findings = () => table("Findings of tacit audit", ["attack", "claimed", "measured, at least", "verdict"],
    audit.findings.map(cells));
  place.replaceChildren(section("Audit", html("p", {},
    html("strong", { class: `badge ${audit.passed ? "private" : "bare"}` }, audit.verdict), " ", audit.reason),
    ...(audit.findings.length ? [findings()] : [])));
}

function showRest(place, told) {
  const open = [...place.querySelectorAll("details")].map((block) => block.open);
  const federation = told.row.kind === "federation";
  place.replaceChildren(
    ...(told.result.length ? [folded(federation ? "Sites" : "Result", factList(told.result))] : []),
    ...(told.spec ? [folded("Specification", html("pre", {}, told.spec))] : []));
  place.querySelectorAll("details").forEach((block, n) => { block.open = open[n] ?? federation; });
}
