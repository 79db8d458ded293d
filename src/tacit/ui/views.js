"use strict";
// The views: each has a title, is built once into the page, and is refreshed with what the server says now. `refresh`
// returns the seconds until the next look.

const SOON = 1.5, LATER = 6;
const MOST_COMPARED = 5; // as many as a chart can tell apart
const goesOn = (state) => state === "running" || state === "stopping";

// ---- the list

const filter = { words: "", state: "", order: "updated", start: 0 };
const marked = new Set(); // ids of the runs to compare

function listView() {
  const words = html("input", { type: "search", placeholder: "Filter: name, method, data …", "aria-label": "Filter",
    "aria-keyshortcuts": "/", value: filter.words });
  const order = html("select", { "aria-label": "Order" }, ...[["updated", "latest first"], ["name", "by name"],
    ["error", "least error first"], ["epsilon", "least epsilon first"]].map(([value, name]) =>
    html("option", { value, ...(value === filter.order ? { selected: "" } : {}) }, name)));
  const states = html("div", { class: "states", role: "group", "aria-label": "State" });
  const rows = html("div", {}), paging = html("div", { class: "paging" }), chosen = html("div", { class: "chosen" });
  let last = null, view = null;

  const changed = (change) => {
    Object.assign(filter, { start: 0 }, change);
    view.now();
  };
  words.addEventListener("input", () => changed({ words: words.value }));
  order.addEventListener("change", () => changed({ order: order.value }));

  const showChosen = () => {
    chosen.hidden = marked.size === 0;
    const go = link(`Compare ${marked.size} runs`, `compare/${[...marked].join(",")}`, { class: "button primary" });
    const clear = html("button", { type: "button" }, "Clear");
    clear.addEventListener("click", () => {
      marked.clear();
      rows.querySelectorAll("input").forEach((box) => { box.checked = false; box.disabled = false; });
      showChosen();
    });
    chosen.replaceChildren(...(marked.size > 1 ? [go] : [html("span", {}, "Choose another run to compare")]), clear);
    rows.querySelectorAll("input").forEach((box) => { box.disabled = !box.checked && marked.size >= MOST_COMPARED; });
  };
  const box = (row) => {
    const made = html("input", { type: "checkbox", "aria-label": `compare ${row.name}`, "data-id": row.id });
    made.checked = marked.has(row.id);
    made.addEventListener("change", () => {
      marked[made.checked ? "add" : "delete"](row.id);
      showChosen();
    });
    return made;
  };
  const named = (row) => html("span", { class: "named" }, row.kind === "run" ? box(row) : html("span", { class: "kind" }, row.kind),
    html("span", {}, link(row.name, `item/${row.id}`, { "data-row": row.id }),
      ...(row.folder ? [html("small", {}, ` ${row.folder}`)] : [])));
  const draw = (told) => {
    const held = document.activeElement?.dataset ?? {}, focus = held.row ? `a[data-row="${held.row}"]` : `input[data-id="${held.id}"]`;
    const cells = told.rows.map((row) => [named(row), standing(row), row.algorithm || row.note || "–", row.data || "–",
      html("span", {}, budget(row.epsilon, null), " ", ...(row.label ? [badge(row.label)] : [])),
      row.shown, html("time", {}, ago(row.updated))]);
    const columns = ["run", "state", "method", "data", "epsilon", "result", "updated"];
    const caption = told.all === 0 ? "Nothing here yet" : `${told.total} of ${told.all}, ${told.folder}`;
    const empty = told.all === 0 ? "No run yet: start one with tacit train, and it appears here." : "Nothing matches the filter.";
    rows.replaceChildren(told.rows.length ? table(caption, columns, cells) : hint(empty));
    if (held.row || held.id) {
      rows.querySelector(focus)?.focus();
    }
    states.replaceChildren(...[["", "all"], ["running", "running"], ["finished", "finished"], ["stopped", "stopped"]].map(([state, name]) => {
      const button = html("button", { type: "button", "aria-pressed": filter.state === state }, `${name} `, html("b", {}, String(told.counts[state])));
      button.addEventListener("click", () => changed({ state }));
      return button;
    }));
    const turn = (name, start) => {
      const button = html("button", { type: "button" }, name);
      button.addEventListener("click", () => { changed({ start }); scrollTo(0, 0); });
      return button;
    };
    const end = told.start + told.rows.length;
    paging.replaceChildren(...(told.start > 0 ? [turn("Earlier", Math.max(0, told.start - 100))] : []),
      ...(told.total > told.rows.length ? [html("span", { class: "hint" }, `${told.start + 1} to ${end} of ${told.total}`)] : []),
      ...(end < told.total ? [turn("More", end)] : []), ...(told.cut ? [hint("There are more folders than are looked at.")] : []));
    document.querySelector("#folder").textContent = told.folder;
    showChosen();
  };
  // the arrow keys go from row to row, and space marks a row to compare
  rows.addEventListener("keydown", (event) => {
    const links = [...rows.querySelectorAll("a[data-row]")], at = links.indexOf(event.target);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (at >= 0 && step) {
      event.preventDefault();
      links[Math.max(0, Math.min(links.length - 1, at + step))].focus();
    } else if (at >= 0 && event.key === " ") {
      event.preventDefault();
      event.target.closest("tr").querySelector("input:not(:disabled)")?.click();
    }
  });
  view = {
    title: "runs",
    build: () => [html("h1", { class: "away" }, "Runs"), html("div", { class: "filters" }, words, states, order), chosen, rows, paging,
      hint("Keys: / filters, up and down go through the rows, space marks a run, enter opens it, escape goes back.")],
    async refresh() {
      const told = await ask("list", filter);
      if (told !== last) {
        last = told;
        draw(told);
      }
      return told.counts.running ? SOON : 2 * SOON;
    },
  };
  return view;
}

function standing(row) {
  const bar = row.rounds && goesOn(row.state) ? [html("progress", { max: row.rounds, value: row.round ?? 0 }),
    html("small", {}, ` ${row.round} of ${row.rounds}`)] : [];
  return html("span", { class: "standing" }, pill(row.state), ...bar);
}

// ---- one run, sweep, federation or folder of ledgers

function itemView(id) {
  const head = html("div", { class: "head" }), note = html("div", {}), grid = chartGrid(), beside = chartGrid();
  const parts = { budgets: html("div", {}), effects: html("div", {}), audit: html("div", {}), inside: html("div", {}), rest: html("div", {}) };
  let last = null, more = null, gauges = null, looked = 0;

  const view = {
    title: "run",
    build: () => [html("nav", { "aria-label": "Where you are" }, link("‹ all runs", "")), head, note,
      parts.inside, grid, beside, parts.budgets, parts.effects, parts.audit, parts.rest],
    async refresh() {
      const told = await ask("item", { id });
      const { row } = told;
      if (told !== last) {
        showHead(head, told, view);
        showInside(parts.inside, told);
        showRest(parts.rest, told);
        view.title = row.name;
        document.title = `${row.name} – tacit`;
      }
      showCharts(grid, told.charts);
      if (told.gauges) {
        showBudgets(parts.budgets, told.gauges, row);
      } else if (row.kind !== "sweep" && Date.now() - looked > (goesOn(row.state) ? 10_000 : 60_000)) {
        looked = Date.now();
        const found = await ask("budgets", { id });
        if (found !== gauges) {
          gauges = found;
          showBudgets(parts.budgets, found, row);
        }
      }
      if (told !== last || more === null) {
        const found = await ask("more", { id });
        if (found !== more) {
          more = found;
          note.replaceChildren(...(found.damaged ? [html("p", { class: "warned" }, found.damaged)] : []));
          showEffects(parts.effects, found.effects);
          showAudit(parts.audit, found.audit, row);
          showComparison(parts.inside, found, told);
        }
      }
      showCharts(beside, more.charts);
      last = told;
      return goesOn(row.state) ? SOON : LATER;
    },
  };
  return view;
}

const tile = (name, value, ...notes) => html("div", { class: "tile" }, html("small", {}, name), html("b", {}, value), ...notes);

function showHead(head, told, view) {
  const { row } = told;
  const about = [row.folder, [row.algorithm, row.data].filter(Boolean).join(" on ")].filter(Boolean).join(" · ");
  const left = told.rate && row.rounds && goesOn(row.state) ? ` · about ${lasting((row.rounds - row.round) / told.rate)} left` : "";
  const progress = goesOn(row.state) && row.rounds
    ? [html("progress", { max: row.rounds, value: row.round, "aria-label": "rounds done" }), html("span", { class: "hint" }, `round ${row.round} of ${row.rounds}${left}`)] : [];
  const tiles = row.kind === "run" ? [
    tile(row.measure || "result", row.shown, ...(goesOn(row.state) ? [html("small", {}, "so far")] : [])),
    tile(row.label === "not private" ? "no guarantee" : row.state === "finished" ? "total epsilon" : "epsilon asked for",
      row.epsilon === null ? "–" : upward(row.epsilon), html("small", {}, row.dp_delta === null ? "" : `δ ${row.dp_delta}`)),
    tile("agents", String(told.agents ?? "–")),
    tile("rounds", String(row.state === "finished" ? row.rounds ?? "–" : row.round ?? "–"), html("small", {}, told.seconds ? lasting(told.seconds) : row.rounds ? `of ${row.rounds}` : "")),
  ] : [];
  const stop = told.can_stop ? [stopButton(row, view)] : row.state === "stopping" ? [html("span", { class: "hint" }, "stops after its round")] : [];
  const resume = row.kind === "run" && row.state === "stopped"
    ? [hint("It has stopped. Continue it with ", html("code", {}, `tacit train --resume ${[row.folder, row.name].filter(Boolean).join("/")}`))] : [];
  const promise = told.guarantee ? [html("p", { class: "promise" }, badge(row.label), " ", told.guarantee.replace(/^not private:\s*/, ""))] : [];
  const focused = document.activeElement?.classList.contains("stop");
  head.replaceChildren(html("h1", {}, row.name), html("p", { class: "hint" }, about || row.note),
    html("div", { class: "standing wide-standing" }, pill(row.state), ...progress, ...stop),
    ...(tiles.length ? [html("div", { class: "tiles" }, ...tiles)] : []), ...promise, ...resume,
    ...(row.note && row.kind === "run" ? [html("p", { class: "warned" }, row.note)] : []));
  if (focused) {
    (head.querySelector(".stop") ?? document.querySelector("main")).focus();
  }
}

function stopButton(row, view) {
  const button = html("button", { type: "button", class: "stop" }, "Stop …");
  button.addEventListener("click", () => {
    const yes = html("button", { class: "danger", value: "yes" }, "Stop after this round");
    const dialog = html("dialog", { "aria-label": "Stop this run?" }, html("form", { method: "dialog" },
      html("h2", {}, `Stop ${row.name}?`),
      html("p", {}, "It ends after the round that it is in. What was done is saved, and tacit train --resume goes on from there. Runs that a sweep computes together stop together."),
      html("div", { class: "toolbar" }, html("button", { value: "no" }, "Let it run"), yes)));
    dialog.addEventListener("close", async () => {
      dialog.remove();
      if (dialog.returnValue === "yes") {
        await ask("stop", { id: row.id }, "POST").catch((error) => told(error.message));
        view.now();
      }
      document.querySelector("main").focus();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return button;
}

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
    grid = chartGrid();
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

// ---- several runs

function compareView(ids) {
  const head = html("div", {}), grid = chartGrid(), apart = html("div", {});
  let last = null;
  return {
    title: "comparison",
    build: () => [html("nav", { "aria-label": "Where you are" }, link("‹ all runs", "")), html("h1", {}, "Comparison"), head, grid, apart],
    async refresh() {
      const told = await ask("compare", { id: ids });
      if (told !== last) {
        last = told;
        head.replaceChildren(table("At the end, or so far", ["run", "state", "method", "epsilon", "result"], told.rows.map((row, n) =>
          [link(told.labels[n], `item/${row.id}`), standing(row), row.algorithm, html("span", {}, budget(row.epsilon, row.dp_delta), " ", ...(row.label ? [badge(row.label)] : [])), row.shown])));
        apart.replaceChildren(...(told.apart.length ? [section("What sets them apart", table("Keys of the specifications that differ", ["key", ...told.labels], told.apart))] : []));
      }
      showCharts(grid, told.charts);
      return told.rows.some((row) => goesOn(row.state)) ? SOON : LATER;
    },
  };
}
