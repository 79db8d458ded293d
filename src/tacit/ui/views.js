"use strict";
// The views: each has a title, is built once into the page, and is refreshed with what the server says now. `refresh`
// returns the seconds until the next look.

const SOON = 1.5, LATER = 6;
const MOST_COMPARED = 5; // as many as a chart can tell apart
const above = () => html("nav", { "aria-label": "Where you are" }, link("‹ all runs", ""));
const goesOn = (state) => state === "running" || state === "stopping";

function standing(row) {
  const bar = row.rounds && goesOn(row.state) ? [html("progress", { max: row.rounds, value: row.round ?? 0 }),
    html("small", {}, ` ${row.round} of ${row.rounds}`)] : [];
  return html("span", { class: "standing" }, pill(row.state), ...bar);
}

// ---- one run, sweep, federation or folder of ledgers

function itemView(id) {
  const head = html("div", { class: "head" }), note = html("div", {}), grid = chartGrid(3);
  const names = ["means", "boards", "inside", "budgets", "effects", "audit", "rest"];
  const parts = Object.fromEntries(names.map((name) => [name, html("div", {})]));
  let last = null, more = null, gauges = null, looked = 0;

  const view = {
    title: "run",
    build: () => [above(), head, note,
      parts.means, parts.boards, grid, parts.inside, parts.budgets, parts.effects, parts.audit, parts.rest],
    async refresh() {
      const told = await ask("item", { id });
      const { row } = told;
      if (told !== last) {
        showHead(head, told, view);
        grid.classList.toggle("alone", row.kind === "run");
        showInside(parts.inside, told);
        showRest(parts.rest, told);
        view.title = row.name;
        document.title = `${row.name} – tacit`;
      }
      showCharts(grid, [...told.charts, ...(more?.charts ?? [])]);
      if (told.gauges) {
        showBudgets(parts.budgets, told.gauges, row);
      } else if (!["sweep", "comparison"].includes(row.kind) && Date.now() - looked > (goesOn(row.state) ? 10_000 : 60_000)) {
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
          showAudit(parts.audit, found.audit);
          showComparison(parts.means, found, told);
          showBoards(parts.boards, found.boards);
        }
      }
      showCharts(grid, [...told.charts, ...more.charts]);
      last = told;
      return goesOn(row.state) ? SOON : LATER;
    },
  };
  return view;
}

const tile = (name, value, ...notes) =>
  html("div", { class: "tile" }, html("small", {}, name), html("b", {}, value), ...notes);

function tilesOf(told) {
  const { row } = told, ended = row.state === "finished";
  const promise = ["not private", "unreadable"].includes(row.label) ? "no guarantee" : ended ? "total epsilon" : "epsilon asked for";
  const time = told.seconds ? lasting(told.seconds) : row.rounds ? `of ${row.rounds}` : "";
  return html("div", { class: "tiles" },
    tile(row.measure || "result", row.shown,
      html("small", {}, `${goesOn(row.state) ? "so far, " : ""}exact (test records)`)),
    tile(promise, budget(row.epsilon, null), html("small", {}, row.dp_delta === null ? "" : `δ ${tiny(row.dp_delta)}`)),
    ...(told.agents ? [tile("agents", String(told.agents))] : []),
    tile("rounds", String((ended ? row.rounds : row.round) ?? "–"), html("small", {}, time)));
}

function progressOf(told) {
  const { row } = told;
  if (!goesOn(row.state) || !row.rounds) {
    return [];
  }
  const left = told.rate ? ` · about ${lasting((row.rounds - row.round) / told.rate)} left` : "";
  return [html("progress", { max: row.rounds, value: row.round, "aria-label": "rounds done" }),
    html("span", { class: "hint" }, `round ${row.round} of ${row.rounds}${left}`)];
}

function showHead(head, told, view) {
  const { row } = told, run = row.kind === "run";
  const about = [row.folder, [row.algorithm, row.data].filter(Boolean).join(" on ")].filter(Boolean).join(" · ");
  const note = row.kind === "federation" ? `last said: ${row.note}` : row.note;
  const stop = told.can_stop ? [stopButton(row, view)]
    : row.state === "stopping" ? [html("span", { class: "hint" }, "stops after its round")] : [];
  const command = `tacit train --resume ${[row.folder, row.name].filter(Boolean).join("/")}`;
  const resume = run && row.state === "stopped"
    ? [hint("It has stopped. Continue it with ", html("code", {}, command))] : [];
  const words = [told.promise, told.guarantee].filter(Boolean).join(" In full: ");
  const focused = document.activeElement?.classList.contains("stop");
  head.replaceChildren(html("h1", {}, row.name), html("p", { class: "hint" }, about || note),
    html("div", { class: "standing wide-standing" }, pill(row.state), ...progressOf(told), ...stop),
    ...(run && row.state !== "unreadable" ? [tilesOf(told)] : []),
    ...(words ? [html("p", { class: "promise" }, badge(row.label), " ", words)] : []), ...resume,
    ...(row.note && run ? [html("p", { class: "warned" }, row.note)] : []));
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
      html("p", {}, "It ends after the round that it is in. What was done is saved, and tacit train --resume goes on "
        + "from there. Runs that a sweep computes together stop together."),
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

// ---- several runs

function compareView(ids) {
  const head = html("div", {}), grid = chartGrid(3), apart = html("div", {});
  let last = null;
  return {
    title: "comparison",
    build: () => [above(), html("h1", {}, "Comparison"), head, grid, apart],
    async refresh() {
      const told = await ask("compare", { id: ids });
      if (told !== last) {
        last = told;
        const cells = (row, n) => [link(told.labels[n], `item/${row.id}`), standing(row), row.algorithm,
          html("span", {}, budget(row.epsilon, row.dp_delta), " ", ...(row.label ? [badge(row.label)] : [])),
          row.shown];
        head.replaceChildren(table("At the end, or so far", ["run", "state", "method", "epsilon", "result"],
          told.rows.map(cells)));
        const differ = () => section("What sets them apart",
          table("Keys of the specifications that differ", ["key", ...told.labels], told.apart));
        apart.replaceChildren(...(told.apart.length ? [differ()] : []));
      }
      showCharts(grid, told.charts);
      return told.rows.some((row) => goesOn(row.state)) ? SOON : LATER;
    },
  };
}
