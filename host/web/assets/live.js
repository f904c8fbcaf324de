// Keeps a page up to date: each time the server says that something has changed,
// the page is fetched again and what is marked as live is put in place. Nothing
// is replaced while somebody types, ticks boxes or has paused it.
"use strict";
(() => {
  const main = document.querySelector("main[data-live], main[data-poll]");
  const control = document.querySelector("#updates");
  if (!main || !control || !window.EventSource) return;
  let paused = false, pending = false, busy = false, last = 0;
  const pace = 2000;

  const touched = () => main.querySelector("input[type=checkbox]:checked, details[open] form, :focus-within:is(input, textarea, select)") !== null
    || (document.activeElement && main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  async function refresh() {
    if (busy || paused || document.hidden || touched()) { pending = true; return; }
    const wait = last + pace - Date.now();
    if (wait > 0) { pending = true; return; }
    busy = true; pending = false; last = Date.now();
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual" });
      if (answer.status !== 200) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of main.querySelectorAll("[data-part]")) {
        const next = fresh.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`);
        if (next && next.innerHTML !== part.innerHTML) {
          const focused = document.activeElement && part.contains(document.activeElement) ? document.activeElement.id : "";
          part.replaceChildren(...next.childNodes);
          if (focused) document.getElementById(focused)?.focus();
        }
      }
    } catch { /* the next change tries again */ } finally { busy = false; }
  }

  if (main.dataset.live) {
    const source = new EventSource(main.dataset.live);
    source.addEventListener("changed", refresh);
    source.addEventListener("over", () => { source.close(); location.reload(); });
  } else {
    setInterval(refresh, 1000 * Number(main.dataset.poll));
  }
  setInterval(() => { if (pending) refresh(); }, 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && pending) refresh(); });
  control.hidden = false;
  control.addEventListener("click", () => {
    paused = !paused;
    control.setAttribute("aria-pressed", String(paused));
    control.textContent = paused ? "Updates paused: go on" : "Pause updates";
    if (!paused) refresh();
  });
})();
