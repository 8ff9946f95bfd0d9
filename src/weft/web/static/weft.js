"use strict";
// What all pages share: sending forms with their proof, and times as this browser's clock has them.
const weft = {
  proof: document.querySelector('meta[name="proof"]').content,
  async send(address, body) {
    const response = await fetch(address, {
      method: "POST",
      headers: { "content-type": "application/json", "x-weft-proof": weft.proof },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
    return response;
  },
};
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.sure;
  if (question && !window.confirm(question)) event.preventDefault();
});
