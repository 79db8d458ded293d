// Reads values off confusion matrices: the pointer finds the cell, and the arrow keys go from cell to cell.
// The drawing is there already; names become text nodes, so no name can become markup.

for (const box of document.querySelectorAll(".matrix")) {
  const { classes, counts } = JSON.parse(box.querySelector("script").textContent);
  const plot = box.querySelector(".plot"), drawn = plot.querySelector("svg");
  const [left, top, cell] = ["left", "top", "cell"].map((name) => Number(drawn.dataset[name]));
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  plot.append(tip);
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  Object.entries({ class: "mark here", width: cell, height: cell, visibility: "hidden" })
    .forEach(([name, value]) => mark.setAttribute(name, value));
  drawn.append(mark);
  let at = null;

  const line = (words, name = "span") => {
    const made = document.createElement(name);
    made.textContent = words;
    return made;
  };
  const show = (i, j) => {
    at = [i, j];
    const whole = counts[i].reduce((a, b) => a + b, 0), [, , width, height] = drawn.getAttribute("viewBox").split(" ");
    const share = whole ? ` (${(100 * counts[i][j] / whole).toFixed(1)}% of ${whole})` : "";
    tip.replaceChildren(line(`${counts[i][j]}${share}`, "b"), line(`true: ${classes[i]}`),
      line(`predicted: ${classes[j]}`));
    mark.setAttribute("x", left + j * cell);
    mark.setAttribute("y", top + i * cell);
    mark.setAttribute("visibility", "visible");
    const right = (100 * (left + (j + 0.5) * cell)) / width, down = (100 * (top + (i + 0.5) * cell)) / height;
    showAt(tip, right, down);
  };
  const hide = () => {
    tip.hidden = true;
    mark.setAttribute("visibility", "hidden");
  };
  const point = (event) => {
    const around = drawn.getBoundingClientRect(), zoom = drawn.viewBox.baseVal.width / around.width;
    const j = Math.floor(((event.clientX - around.left) * zoom - left) / cell);
    const i = Math.floor(((event.clientY - around.top) * zoom - top) / cell);
    if (i in counts && j in counts[i]) {
      show(i, j);
    } else {
      hide();
    }
  };
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const step = (event) => {
    if (event.key === "Escape") {
      hide();
    } else if (event.key in moves) {
      event.preventDefault();
      const within = (k) => Math.min(Math.max(k, 0), classes.length - 1);
      const [down, right] = at === null ? [0, 0] : moves[event.key], [i, j] = at ?? [0, 0];
      show(within(i + down), within(j + right));
    }
  };
  Object.entries({ pointermove: point, pointerdown: point, pointerleave: hide, blur: hide, keydown: step })
    .forEach(([name, listener]) => drawn.addEventListener(name, listener));
}
