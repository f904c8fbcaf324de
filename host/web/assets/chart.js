// Reads a chart's values: what the mouse points at, or what the arrow keys lead to, is said
// above it. The values are those of its table. Without this the table says the same.
"use strict";
(() => {
  let shown = null; // the chart and the step that are read, of all charts on the page

  // prepare makes the charts of a page, or of one that it will be brought in line with,
  // ready for the keyboard, and shows in them what is read now.
  function prepare(page) {
    for (const plot of page.querySelectorAll(".plot")) {
      plot.tabIndex = 0;
      plot.setAttribute("role", "group");
      plot.setAttribute("aria-label", "Values of the chart: the arrow keys read them");
      if (shown && plot.closest("figure").dataset.key === shown.chart) show(plot, shown.step);
    }
  }

  // show says what a step has, and marks it.
  function show(plot, step) {
    const figure = plot.closest("figure"), steps = Number(plot.dataset.steps);
    const row = figure.querySelector(`tr[data-step="${step}"]`), out = figure.querySelector("[data-readout]");
    const heads = [...figure.querySelectorAll("thead th")].slice(1);
    const at = 1000 * step / (steps - 1);
    plot.querySelector(".cursor").setAttribute("d", `M${at} 0V200`);
    if (!row) { out.textContent = "Nothing was counted then."; return; }
    const head = row.querySelector("th").cloneNode(true);
    out.replaceChildren(...head.childNodes, ...[...row.querySelectorAll("td")].flatMap((cell, n) => {
      const name = document.createElement("span"), value = document.createElement("strong"), both = document.createElement("span");
      name.className = "faint";
      name.textContent = heads[n].textContent;
      value.textContent = cell.textContent;
      both.append(name, " ", value);
      return [" ", both];
    }));
  }

  function read(plot, step) {
    shown = { chart: plot.closest("figure").dataset.key, step: Math.min(Math.max(step, 0), Number(plot.dataset.steps) - 1) };
    show(plot, shown.step);
  }

  function leave(plot) {
    plot.querySelector(".cursor").setAttribute("d", "");
    shown = null;
  }

  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.(".plot");
    const before = shown && document.querySelector(`figure[data-key="${CSS.escape(shown.chart)}"] .plot`);
    if (before && before !== plot && before !== document.activeElement) leave(before);
    if (!plot) return;
    const box = plot.querySelector("svg").getBoundingClientRect();
    read(plot, Math.round((event.clientX - box.left) / box.width * (Number(plot.dataset.steps) - 1)));
  });
  document.addEventListener("focusout", (event) => { if (event.target.matches?.(".plot")) leave(event.target); });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(".plot") || event.ctrlKey || event.altKey || event.metaKey) return;
    const plot = event.target, last = Number(plot.dataset.steps) - 1;
    const now = shown && shown.chart === plot.closest("figure").dataset.key ? shown.step : last + 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 10, PageDown: now + 10, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    plot.closest("figure").querySelector("[data-readout]").setAttribute("aria-live", "polite");
    read(plot, to);
  });
  prepare(document);
  document.addEventListener("fresh", (event) => prepare(event.detail));
})();
