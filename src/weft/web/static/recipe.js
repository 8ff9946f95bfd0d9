"use strict";
// Layers are moved by dragging or by their arrows; the preview follows each change.
(() => {
  const form = document.getElementById("recipe");
  const list = document.getElementById("layers");
  const preview = document.getElementById("preview");
  let dragged = null;
  let timer = 0;

  const look = async () => {
    const answer = await fetch("/recipes/preview", {
      method: "POST",
      headers: { "x-weft-proof": weft.proof, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(new FormData(form)),
    });
    const text = await answer.text();
    if (answer.ok) preview.replaceChildren(new DOMParser().parseFromString(text, "text/html").getElementById("built"));
    else {
      const problem = document.createElement("p");
      problem.className = "alert";
      problem.textContent = text;
      preview.replaceChildren(problem);
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, 300);
  };
  const moved = () => {
    form.elements.order.value = [...list.children].map((row) => row.dataset.at).join(",");
    soon();
  };
  list.addEventListener("click", (event) => {
    const arrow = event.target.closest(".move");
    if (!arrow) return;
    const row = arrow.closest("li");
    if (arrow.dataset.by === "-1") row.previousElementSibling?.before(row);
    else row.nextElementSibling?.after(row);
    arrow.focus();
    moved();
  });
  list.addEventListener("dragstart", (event) => (dragged = event.target.closest("li")));
  list.addEventListener("dragover", (event) => {
    event.preventDefault();
    const over = event.target.closest("li");
    if (!dragged || !over || over === dragged) return;
    const middle = over.getBoundingClientRect().top + over.offsetHeight / 2;
    if (event.clientY < middle) over.before(dragged);
    else over.after(dragged);
  });
  list.addEventListener("drop", (event) => event.preventDefault());
  list.addEventListener("dragend", () => {
    dragged = null;
    moved();
  });
  form.addEventListener("change", soon);
  document.getElementById("look").addEventListener("click", (event) => {
    event.preventDefault();
    look();
  });
  document.querySelectorAll(".script-only").forEach((one) => one.classList.add("has-script"));
})();
