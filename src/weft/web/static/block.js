"use strict";
// A block: shows at once what others write, keeps what is typed here, and moves through its history.
(() => {
  const block = document.getElementById("block");
  const note = document.getElementById("live");
  const area = document.querySelector("textarea[data-live='1']");
  let version = block.dataset.version;
  let isDeleted = false;
  const tell = (words) => {
    note.textContent = words;
    note.hidden = false;
  };
  const changed = (event) => {
    if (event.deleted) {
      isDeleted = true;
      return tell("This block was deleted.");
    }
    if (event.version === version) return;
    version = event.version;
    if (area && typeof event.text !== "string") return;
    if (!area || area.value !== area.defaultValue) {
      return tell(area ? "Somebody else changed this block. What you write stays: saving puts both together." : "This block was changed: load the page again to see it.");
    }
    area.value = area.defaultValue = event.text;
    area.form.elements.base.value = version;
    tell("Somebody else changed this block: this is the new text.");
  };
  let request = null;
  const shown = () => new Promise((resolve) => {
    if (!document.hidden) return resolve();
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
  // A browser has few connections to a server: a window that nobody sees needs none.
  document.addEventListener("visibilitychange", () => document.hidden && request?.abort());
  const listen = async () => {
    for (let goes = true; goes; ) {
      await shown();
      goes = await follow().catch(() => true);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
    if (!isDeleted) tell("Changes of others are not shown any more: load the page again.");
  };
  const follow = async () => {
    request = new AbortController();
    const response = await fetch(block.dataset.live, { headers: { "x-weft-proof": weft.proof }, signal: request.signal });
    if (!response.ok || response.redirected) return false;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return !isDeleted;
      rest += value;
      const events = rest.split("\n\n");
      rest = events.pop();
      events.forEach((event) => changed(JSON.parse(event.slice(6))));
    }
  };
  listen();

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
