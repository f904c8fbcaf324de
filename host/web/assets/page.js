// Small comforts: copy an id, tick all boxes. Every page works without them.
"use strict";
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy id"; }, 1500);
  } catch { button.textContent = "Select it by hand"; }
});
document.addEventListener("change", (event) => {
  if (!event.target.matches("input[data-all]")) return;
  for (const box of event.target.form.querySelectorAll("input[name=uuid]")) box.checked = event.target.checked;
});
for (const hidden of document.querySelectorAll("[data-script]")) hidden.hidden = false;
