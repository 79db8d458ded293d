"use strict";
// Choices live on the root element, where the style sheet reads them; nothing is stored.
const root = document.documentElement.dataset;
for (const button of document.querySelectorAll("button[data-sets]")) {
  const name = button.dataset.sets;
  const choices = button.dataset.choices.split(" ");
  button.addEventListener("click", () => {
    root[name] = choices[(choices.indexOf(root[name]) + 1) % choices.length];
    button.querySelector("b").textContent = root[name];
  });
}
document.querySelector(".toolbar").hidden = false;

// Paper cannot be unfolded.
addEventListener("beforeprint", () => {
  for (const block of document.querySelectorAll("details:not([open])")) {
    block.open = true;
    block.dataset.folded = "";
  }
});
addEventListener("afterprint", () => {
  for (const block of document.querySelectorAll("details[data-folded]")) {
    block.open = false;
    delete block.dataset.folded;
  }
});
