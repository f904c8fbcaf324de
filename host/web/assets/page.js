// Small comforts: copy a text, tick all boxes, complete the last word of a
// filter. Every page works without them.
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
for (const hidden of document.querySelectorAll("[data-script]")) hidden.hidden = false;

// A browser completes a whole field. A filter has several terms, of which the last
// one is being written: what stands before it is put before each proposal.
for (const input of document.querySelectorAll("input[list]")) {
  const words = [...input.list.options].map((option) => option.value);
  input.addEventListener("input", () => {
    const head = input.value.match(/^.*(?:\bAND|\bOR|\bNOT|\()\s*/s)?.[0] ?? "";
    [...input.list.options].forEach((option, at) => { option.value = head + words[at]; });
  });
}
