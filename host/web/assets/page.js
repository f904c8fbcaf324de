// Small comforts: copy a text, tick all boxes, complete the last word of a
// filter, times in the browser's zone. Every page works without them.
"use strict";
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  } catch { button.textContent = "Select it by hand"; }
});
document.addEventListener("change", (event) => {
  if (!event.target.matches("input[data-all]")) return;
  for (const box of event.target.form.querySelectorAll("input[name=uuid]")) box.checked = event.target.checked;
});
// A page comes with times in UTC. What the browser's zone makes of them is written over
// that, also in what a page that is kept up to date fetches: then "fresh" is told of it.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const day = { year: "numeric", month: "2-digit", day: "2-digit" }, clock = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const formats = Object.fromEntries(Object.entries({
  whole: { ...day, ...clock, timeZoneName: "short" }, clock: { ...clock, fractionalSecondDigits: 3 },
  minute: { hour: "2-digit", minute: "2-digit" }, date: { month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" },
}).map(([name, parts]) => [name, new Intl.DateTimeFormat("sv-SE", { ...parts, hourCycle: "h23" })]));
function dress(page) {
  for (const hidden of page.querySelectorAll("[data-script]")) hidden.hidden = false;
  if (document.documentElement.dataset.zone !== "browser") return;
  for (const time of page.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    if (time.title) time.title = formats.whole.format(at);
    if (formats[time.dataset.format]) time.textContent = formats[time.dataset.format].format(at).replace(",", ".");
  }
  for (const field of page.querySelectorAll("input[data-zone]")) field.value ||= zone;
  for (const name of page.querySelectorAll("[data-zone-name]")) name.textContent = zone;
}
dress(document);
document.addEventListener("fresh", (event) => dress(event.detail));

// A browser completes a whole field. A filter has several terms, of which the last
// one is being written: what stands before it is put before each proposal.
for (const input of document.querySelectorAll("input[list]")) {
  const words = [...input.list.options].map((option) => option.value);
  input.addEventListener("input", () => {
    const head = input.value.match(/^.*(?:\bAND|\bOR|\bNOT|\()\s*/s)?.[0] ?? "";
    [...input.list.options].forEach((option, at) => { option.value = head + words[at]; });
  });
}
