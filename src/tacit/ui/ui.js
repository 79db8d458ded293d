"use strict";
// The page itself: the token, which view is shown, when it looks again, and keys that work everywhere.

const main = document.querySelector("main"), live = document.querySelector("#live");
let current = null, timer = 0, turn = 0;

// The link that was printed holds the token behind a #, which no browser sends anywhere; it leaves the address at once.
function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", "#/");
  }
}

const told = (words) => { live.textContent = words; };

function viewOf(hash) {
  const [, kind, rest] = /^#\/(\w*)\/?(.*)$/.exec(hash) ?? [];
  if (kind === "item" && rest) {
    return itemView(rest);
  }
  return kind === "compare" && rest ? compareView(rest.split(",")) : listView();
}

function show() {
  const view = viewOf(location.hash);
  view.now = () => look(view);
  current = view;
  document.title = `tacit: ${view.title}`;
  main.replaceChildren(...view.build());
  scrollTo(0, 0);
  look(view);
}

// Looks at once, and again after as many seconds as the view asks for; a page in the background waits.
async function look(view) {
  clearTimeout(timer);
  const own = ++turn;
  let pause = LATER;
  try {
    pause = document.hidden ? pause : await view.refresh();
    told("live");
    root.live = "yes";
  } catch (error) {
    root.live = "no";
    if (error instanceof Refused && error.status === 401) {
      askForToken();
      return;
    }
    told(error instanceof Refused ? error.message : "the server does not answer: is tacit ui still running?");
  }
  if (view === current && own === turn) {
    timer = setTimeout(() => look(view), 1000 * pause);
  }
}

function askForToken() {
  const field = html("input", { id: "token", autocomplete: "off", spellcheck: "false" });
  const form = html("form", { class: "token" }, html("h1", {}, "Open the link that was printed"),
    html("p", {}, "tacit ui prints a link with a token, without which nothing is told. Open that link, or paste it:"),
    html("label", { for: "token" }, "Token"), field, html("button", { class: "primary" }, "Show the runs"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, field.value.trim().replace(/^.*#token=/, ""));
    show();
  });
  main.replaceChildren(form);
  told("no token");
  field.focus();
}

addEventListener("hashchange", () => {
  takeToken();
  show();
  main.focus();
});
document.addEventListener("visibilitychange", () => !document.hidden && current && look(current));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input:not([type=checkbox]), select") || document.querySelector("dialog[open]");
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.key === "/" && !typing) {
    const field = document.querySelector("input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (event.target.matches?.("input[type=search]")) {
      event.target.blur();
      main.focus();
    } else if (location.hash !== "#/" && !event.target.matches?.(".plot svg")) {
      location.hash = "#/";
    }
  }
});
listenToChoices(() => document.querySelectorAll("figure").forEach((figure) =>
  figure.chart && drawChart(figure, figure.chart)));
takeToken();
show();
