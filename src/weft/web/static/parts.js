"use strict";
// Reads the parts of a page that take a moment.
document.querySelectorAll("[data-part]").forEach(async (place) => {
  place.setAttribute("aria-busy", "true");
  const response = await fetch(place.dataset.part, { headers: { "x-weft-proof": weft.proof } });
  const text = await response.text();
  place.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
  place.removeAttribute("aria-busy");
});
