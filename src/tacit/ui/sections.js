"use strict";
// The sections of a view that are made of what the server says of a run, a sweep or a federation.

function showInside(place, told) {
  place.replaceChildren(...(told.runs.length ? [section("Runs", table(`${told.runs.length} runs`, ["run", "state", "method", "epsilon", "result", "updated"],
    told.runs.map((row) => [link(row.name, `item/${row.id}`), standing(row), row.algorithm, budget(row.epsilon, null), row.shown, ago(row.updated)])))] : []));
}

function showComparison(place, found, told) {
  if (found.comparison.length) {
    const number = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(4))));
    const result = (row) => (row.test_error !== null && row.test_error !== undefined ? `${(100 * row.test_error).toFixed(2)}%` : number(row.test_rmse));
    place.prepend(section("Means over seeds", table(found.title ?? told.row.name, ["runs", "method", "data", "guarantee", "epsilon", "rounds", "seeds", "result"],
      found.comparison.map((row) => [row.runs, row.algorithm, row.data ?? "–", badge(row.label), row.epsilon === null ? "–" : upward(row.epsilon), String(row.rounds), String(row.seeds), result(row)])),
      ...(found.many ? [hint("These are too many runs for one set of charts: choose some in the list, and compare them.")] : [])));
  }
}

function showBudgets(place, found, row) {
  const unread = found.unread.map(({ ledger, reason }) => html("li", {}, html("b", {}, ledger), ` ${reason}`));
  if (!found.gauges.length && !unread.length && !found.where) {
    place.replaceChildren();
    return;
  }
  let grid = place.querySelector(".charts");
  if (!grid) {
    grid = chartGrid(3);
    const meaning = row.kind === "federation" ? "As the coordinator counts. The ledgers of the agents are with the agents: they may hold up to what is drawn faintly."
      : "From the ledgers of the agents: all runs on the same data, composed.";
    place.replaceChildren(section("Budget of each agent", hint(meaning), html("ul", { class: "agents" }), html("ul", { class: "unread hint" }), grid));
  }
  place.querySelector(".agents").replaceChildren(...found.gauges.map(gaugeCard));
  place.querySelector(".unread").replaceChildren(...unread, ...(found.more ? [html("li", {}, `${found.more} more ledgers are not read.`)] : []),
    ...(found.where && !found.gauges.length ? [html("li", {}, found.where)] : []));
  showCharts(grid, found.charts);
}

function showEffects(place, effects) {
  if (!effects) {
    place.replaceChildren();
    return;
  }
  if (!effects.charts.length) {
    place.replaceChildren(...(effects.reason ? [section("What the model has learnt", hint(`The effect of each column is not drawn: ${effects.reason}`))] : []));
    return;
  }
  const [against, of] = effects.classes;
  const meaning = effects.log_odds ? `A chart shows what each value of a column adds to the log-odds of ${of} against ${against}: +0.69 doubles the odds.`
    : "A chart shows what each value of a column adds to the score.";
  const notes = [effects.charts.length < effects.all ? `${effects.charts.length} of ${effects.all} columns are drawn.` : "",
    effects.undrawn.length ? `These columns have effects too, which cannot be drawn: ${effects.undrawn.join(", ")}.` : ""].filter(Boolean);
  const grid = chartGrid(3);
  place.replaceChildren(section("What the model has learnt", html("p", {}, `${meaning} Zero is the mean over the declared values; all charts have one scale, the largest effect first. `
    + `The band shows how far the noise for privacy alone can have moved an effect.`), ...notes.map((one) => hint(one)), grid));
  showCharts(grid, effects.charts);
}

function showAudit(place, audit, row) {
  if (!audit) {
    place.replaceChildren();
    return;
  }
  const verdict = audit.passed === null ? "not readable" : audit.passed ? "consistent" : "VIOLATED";
  const number = (value) => (value === null ? "–" : String(Number(value.toPrecision(4))));
  place.replaceChildren(section("Audit", html("p", {}, html("strong", { class: `badge ${audit.passed ? "private" : "bare"}` }, verdict), " ",
    audit.reason || "Attacks on this method measure a lower bound on epsilon. A consistent claim is not proved by them."),
    ...(audit.findings.length ? [table("Findings of tacit audit", ["attack", "claimed", "measured, at least", "verdict"],
      audit.findings.map((one) => [[one.attack, one.name].filter(Boolean).join(": "), number(one.claimed), number(one.measured), one.verdict]))] : [])));
}

function showRest(place, told) {
  const open = [...place.querySelectorAll("details")].map((block) => block.open);
  place.replaceChildren(...(told.result.length ? [folded(told.row.kind === "federation" ? "Sites" : "Result", factList(told.result))] : []),
    ...(told.spec ? [folded("Specification", html("pre", {}, told.spec))] : []));
  place.querySelectorAll("details").forEach((block, n) => { block.open = open[n] ?? told.row.kind === "federation"; });
}
