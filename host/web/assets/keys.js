// Shortcuts of one key, which "?" lists. They can be switched off, and do nothing while
// somebody writes, or holds another key down with it.
"use strict";
(() => {
  const list = document.querySelector("#keys");
  document.querySelector("#show-keys")?.addEventListener("click", () => list.showModal());
  if (!list || document.documentElement.dataset.keys === "off") return;

  const rows = () => [...document.querySelectorAll("main table:not(.names, .numbers) tbody tr")].filter((row) => row.querySelector("a[href], button, input") && row.checkVisibility());
  const step = (by) => {
    const all = rows(), at = all.findIndex((row) => row.contains(document.activeElement));
    const row = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    (row?.querySelector("a[href]") ?? row?.querySelector("button, input"))?.focus();
  };
  const keys = {
    "?": () => list.showModal(),
    "/": () => document.querySelector("#search").focus(),
    b: () => { location.href = "/"; },
    j: () => step(1),
    k: () => step(-1),
    x: () => document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click(),
    n: () => document.querySelector("a[rel=next]")?.click(),
    p: () => document.querySelector("#updates:not([hidden])")?.click(),
  };
  document.querySelectorAll("nav.sections a").forEach((link, at) => { keys[at + 1] = () => link.click(); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || list.open) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select, [contenteditable], .plot")) return;
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
})();
