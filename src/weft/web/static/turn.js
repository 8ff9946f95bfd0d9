"use strict";
// Reads the exact text of an item when somebody opens it, and opens the item that the address names.
document.addEventListener(
  "toggle",
  async (event) => {
    const item = event.target;
    if (!item.open || !item.dataset.text) return;
    const address = item.dataset.text;
    delete item.dataset.text;
    const place = document.createElement("div");
    place.textContent = "reading ...";
    item.append(place);
    try {
      const response = await fetch(address, { headers: { "x-weft-proof": weft.proof } });
      const text = await response.text();
      if (!response.ok) throw new Error(text);
      place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
    } catch (error) {
      place.textContent = error.message;
      item.dataset.text = address;
    }
  },
  true,
);
const openNamed = () => {
  const named = document.getElementById(location.hash.slice(1));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
  }
};
window.addEventListener("hashchange", openNamed);
openNamed();
