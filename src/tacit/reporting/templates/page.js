"use strict";
// Adds to a page that is complete without it: reading the pictures, and moving the threshold.
(() => {
  // The square of a picture, as charts.py draws it.
  const LEFT = 54, TOP = 12, SIDE = 300;
  const clamp = (value) => Math.min(Math.max(value, 0), 1);
  const shown = (value) => (value === null ? "not known" : value.toFixed(4));

  const mark = (circle, x, y) => {
    circle.setAttribute("cx", LEFT + clamp(x) * SIDE);
    circle.setAttribute("cy", TOP + (1 - clamp(y)) * SIDE);
    circle.removeAttribute("hidden");
  };

  const readable = (svg) => {
    const table = document.getElementById(svg.id + "-table");
    const line = svg.parentElement.querySelector(".readout");
    const probe = svg.querySelector(".probe");
    const resting = line.textContent;
    const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    const points = [...table.tBodies[0].rows].map((row) => ({
      x: Number(row.dataset.x), y: Number(row.dataset.y), row,
    }));
    const say = (row) => heads
      .map((head, column) => head + " " + row.cells[column].textContent)
      .join(", ")
      .replace(", Band from ", " (band ").replace(/, to ([^,]*)/, " to $1)");
    svg.addEventListener("pointermove", (event) => {
      const matrix = svg.getScreenCTM();
      if (!matrix || !points.length) return;
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      const x = (at.x - LEFT) / SIDE, y = 1 - (at.y - TOP) / SIDE;
      const away = (point) => Math.hypot(point.x - x, point.y - y);
      const nearest = points.reduce((best, one) => (away(one) < away(best) ? one : best));
      mark(probe, nearest.x, nearest.y);
      line.textContent = say(nearest.row);
    });
    svg.addEventListener("pointerleave", () => {
      probe.setAttribute("hidden", "hidden");
      line.textContent = resting;
    });
  };

  const movable = (box, rates) => {
    const name = box.dataset.result;
    const slider = box.querySelector("input");
    const value = box.querySelector("output");
    const show = () => {
      const at = Number(slider.value);
      const threshold = rates.shown[at];
      value.textContent = threshold;
      for (const cell of box.querySelectorAll("[data-rate]")) {
        cell.textContent = shown(rates[cell.dataset.rate][at]);
      }
      for (const cell of box.querySelectorAll("[data-interval]")) {
        const low = rates[cell.dataset.interval + "_low"][at];
        const high = rates[cell.dataset.interval + "_high"][at];
        cell.textContent = low === null || high === null
          ? "not known" : shown(low) + " to " + shown(high);
      }
      for (const bar of box.querySelectorAll("[data-gauge]")) {
        bar.setAttribute("width", 100 * clamp(rates[bar.dataset.gauge][at] ?? 0));
      }
      slider.setAttribute("aria-valuetext", threshold + ": precision " + shown(rates.precision[at])
        + ", recall " + shown(rates.recall[at]) + ", F1 " + shown(rates.f1[at]));
      place(name + "-roc", rates.specificity[at] === null ? null : 1 - rates.specificity[at],
        rates.recall[at]);
      place(name + "-pr", rates.recall[at], rates.precision[at]);
    };
    slider.addEventListener("input", show);
    show();
  };

  const place = (plot, x, y) => {
    const circle = document.querySelector("#" + plot + " .chosen");
    if (!circle) return;
    if (x === null || y === null) circle.setAttribute("hidden", "hidden");
    else mark(circle, x, y);
  };

  const all = JSON.parse(document.getElementById("rates").textContent);
  document.querySelectorAll("svg.plot").forEach(readable);
  document.querySelectorAll(".slider").forEach((box) => movable(box, all[box.dataset.result]));
  document.documentElement.dataset.ready = "yes";
})();
