"use strict";
// The script of the static report: every figure holds the description of its chart as JSON, and chart.js draws the chart
// anew for each choice of the reader.

const drawAll = () => document.querySelectorAll("figure").forEach((figure) =>
  drawChart(figure, JSON.parse(figure.querySelector("script").textContent)));
listenToChoices(drawAll);
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
