"use strict";
// The list of everything below the served directory: filter, order, and runs that are marked to be compared.

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
  const named = (row) => html("span", { class: "named" },
    row.kind === "run" ? box(row) : html("span", { class: "kind" }, row.kind),
    html("span", {}, link(row.name, `item/${row.id}`, { "data-row": row.id }),
      ...(row.folder ? [html("small", {}, ` ${row.folder}`)] : [])));
  const draw = (told) => {
    const held = document.activeElement?.dataset ?? {};
    const focus = held.row ? `a[data-row="${held.row}"]` : `input[data-id="${held.id}"]`;
    const cells = told.rows.map((row) => [named(row), standing(row), row.algorithm || row.note || "–", row.data || "–",
      html("span", {}, budget(row.epsilon, null), " ", ...(row.label ? [badge(row.label)] : [])),
      row.shown, html("time", {}, ago(row.updated))]);
    const columns = ["run", "state", "method", "data", "epsilon", "result", "updated"];
    const caption = told.all === 0 ? "Nothing here yet" : `${told.total} of ${told.all}, ${told.folder}`;
    const empty = told.all === 0 ? "No run yet: start one with tacit train, and it appears here."
      : "Nothing matches the filter.";
    rows.replaceChildren(told.rows.length ? table(caption, columns, cells) : html("p", { class: "empty" }, empty));
    rows.classList.add("list");
    if (held.row || held.id) {
      rows.querySelector(focus)?.focus();
    }
    states.replaceChildren(...["", "running", "finished", "stopped"].map((state) => {
      const button = html("button", { type: "button", "aria-pressed": filter.state === state }, `${state || "all"} `,
        html("b", {}, String(told.counts[state])));
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
      ...(told.total > told.rows.length
        ? [html("span", { class: "hint" }, `${told.start + 1} to ${end} of ${told.total}`)] : []),
      ...(end < told.total ? [turn("More", end)] : []),
      ...(told.cut ? [hint("There are more folders than are looked at.")] : []));
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
    build: () => [html("h1", { class: "away" }, "Runs"),
      html("div", { class: "filters" }, words, states, order), rows, chosen, paging,
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
