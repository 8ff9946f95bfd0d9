"use strict";
// A block: shows at once what others write, keeps what is typed here, and moves through its history.
(() => {
  const block = document.getElementById("block");
  const note = document.getElementById("live");
  const area = document.querySelector("textarea[data-live='1']");
  let version = block.dataset.version;
  const tell = (words) => {
    note.textContent = words;
    note.hidden = false;
  };
  const changed = (event) => {
    if (event.deleted) return tell("This block was deleted.");
    if (event.version === version) return;
    version = event.version;
    if (!area || area.value !== area.defaultValue) {
      return tell(area ? "Somebody else changed this block. What you write stays: saving puts both together." : "This block was changed: load the page again to see it.");
    }
    area.value = area.defaultValue = event.text;
    area.form.elements.base.value = version;
    tell("Somebody else changed this block: this is the new text.");
  };
  const listen = async () => {
    const response = await fetch(block.dataset.live, { headers: { "x-weft-proof": weft.proof } });
    if (!response.ok) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const events = rest.split("\n\n");
      rest = events.pop();
      events.forEach((event) => changed(JSON.parse(event.slice(6))));
    }
  };
  listen().catch(() => {});

  const slider = document.getElementById("slider");
  if (!slider) return;
  const range = slider.querySelector("input[type=range]");
  const versions = range.dataset.versions.split(" ");
  const select = slider.elements.version;
  if (range.getAttribute("value") === "") range.value = range.max;
  range.addEventListener("input", () => (select.value = versions[range.value]));
  range.addEventListener("change", () => slider.requestSubmit());
  select.addEventListener("change", () => (range.value = versions.indexOf(select.value)));
})();
