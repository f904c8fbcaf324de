// Keeps a page up to date: each time the server says that something has changed,
// the page is fetched again, and what is marked as live is brought in line with
// it. Elements that stay are not put anew, so that a click, the focus and a folded
// part survive; and nothing changes while somebody types, ticks boxes, holds the
// mouse button, or has paused it.
"use strict";
(() => {
  const main = document.querySelector("main[data-live], main[data-poll]");
  const control = document.querySelector("#updates");
  if (!main || !control || !window.EventSource) return;
  let paused = false, pending = false, busy = false, pressed = false, used = false, last = 0;
  const pace = 2000, patience = 30000; // before it asks again after an answer that is no stream

  const touched = () => pressed || main.querySelector("details[open] form") !== null
    || [...main.querySelectorAll("input[type=checkbox]")].some((box) => box.checked !== box.defaultChecked)
    || (main.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  const same = (a, b) => a.nodeName === b.nodeName && a.dataset?.key === b.dataset?.key;

  // morph makes the children and attributes of an element those of another.
  function morph(old, next) {
    for (const { name } of [...old.attributes]) if (name !== "open" && !next.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of next.attributes) if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    const keyed = new Map();
    for (const child of old.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
    let at = old.firstChild;
    for (const child of [...next.childNodes]) {
      const known = keyed.get(child.dataset?.key);
      if (known && known !== at) old.insertBefore(known, at);
      else if (!known && !(at && same(at, child))) {
        old.insertBefore(document.importNode(child, true), at);
        continue;
      }
      const mine = known ?? at;
      at = mine.nextSibling;
      if (mine.nodeType === Node.ELEMENT_NODE) morph(mine, child);
      else if (mine.nodeValue !== child.nodeValue) mine.nodeValue = child.nodeValue;
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  }

  async function refresh() {
    if (busy || paused || document.hidden || touched() || Date.now() < last + pace) { pending = true; return; }
    busy = true; pending = false; last = Date.now();
    try {
      const headers = used ? {} : { "Boardd-By-Itself": "1" }; // which does not keep the visit from its end
      used = false;
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "manual", headers });
      if (answer.type === "opaqueredirect") { location.reload(); return; } // to where one signs in
      if (answer.status !== 200) { pending = answer.status >= 500; return; }
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (paused || touched()) { pending = true; return; }
      document.dispatchEvent(new CustomEvent("fresh", { detail: fresh }));
      for (const part of main.querySelectorAll("[data-part]")) {
        const next = fresh.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`);
        if (next) morph(part, next);
      }
    } catch { pending = true; } finally { busy = false; }
  }

  // A browser that is cut off connects again by itself, but not where there is no board just now.
  function listen() {
    const source = new EventSource(main.dataset.live);
    source.addEventListener("changed", refresh);
    source.addEventListener("over", () => { source.close(); location.reload(); });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { listen(); refresh(); }, patience);
    });
  }

  if (main.dataset.live) {
    listen();
  } else {
    setInterval(refresh, 1000 * Number(main.dataset.poll));
  }
  setInterval(() => { if (pending) refresh(); }, 500);
  addEventListener("pointerdown", () => { pressed = true; });
  for (const sign of ["pointerdown", "keydown", "wheel"]) addEventListener(sign, () => { used = true; }, { passive: true });
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = false; });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && pending) refresh(); });
  control.hidden = false;
  control.addEventListener("click", () => {
    paused = !paused;
    control.setAttribute("aria-pressed", String(paused));
    control.textContent = paused ? "Updates paused: go on" : "Pause updates";
    if (!paused) refresh();
  });
})();
