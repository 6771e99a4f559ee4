// A live preview: what the form says is shown again as it changes. Without this script, the
// button Preview does the same.
"use strict";
(() => {
  const form = document.getElementById("question");
  const place = document.getElementById("preview");
  const amount = document.getElementById("spend_amount");
  const kind = document.getElementById("spend_kind");
  const PAUSE = 350;
  let timer = 0;
  let turn = 0;

  const stop = () => {
    const button = place.querySelector(".spend-now");
    if (button) { button.disabled = true; }
    place.classList.add("stale");
    place.setAttribute("aria-busy", "true");
  };

  const look = async (rehearse) => {
    clearTimeout(timer);
    stop();
    const mine = ++turn;
    const body = new URLSearchParams(new FormData(form));
    if (rehearse) { body.set("rehearse", "yes"); }
    let text = "";
    try {
      const answer = await fetch(form.action, {
        method: "POST", body, headers: { "X-Part": "preview" }, redirect: "error",
      });
      if (!answer.headers.get("content-type").startsWith("text/html")) { throw new Error("no page"); }
      text = await answer.text();
    } catch {
      if (mine === turn) { rehearse ? form.submit() : stop(); }
      return;
    }
    if (mine !== turn) { return; }
    const made = new DOMParser().parseFromString(text, "text/html");
    place.replaceChildren(...made.body.childNodes);
    place.classList.remove("stale");
    place.removeAttribute("aria-busy");
  };

  const later = () => {
    stop();
    turn += 1;
    clearTimeout(timer);
    timer = setTimeout(() => { if (form.checkValidity()) { look(false); } }, PAUSE);
  };

  form.addEventListener("input", later);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = event.submitter;
    look(button !== null && button.name === "rehearse");
  });

  // A slider beside the amount, over what is left, in steps that look even.
  const most = Number(place.dataset.most);
  if (amount && most > 0) {
    const usual = kind.value;
    const slider = document.createElement("input");
    slider.type = "range";
    slider.min = "0"; slider.max = "100"; slider.step = "1";
    slider.setAttribute("aria-label", "Spend, from a hundredth of what is left to all of it");
    const value = (at) => Number((most * 10 ** (2 * (at / 100 - 1))).toPrecision(2));
    const at = (held) => Math.round(100 * (1 + Math.log10(held / most) / 2));
    const settle = () => {
      slider.hidden = kind.value !== usual;
      if (Number(amount.value) > 0) { slider.value = String(at(Number(amount.value))); }
    };
    slider.addEventListener("input", () => {
      const held = Math.min(value(Number(slider.value)), most);
      amount.value = String(Number(slider.value) === 100 ? Number(most.toPrecision(12)) : held);
    });
    amount.addEventListener("input", settle);
    kind.addEventListener("change", () => { settle(); later(); });
    amount.closest(".row").after(slider);
    settle();
  }
})();
