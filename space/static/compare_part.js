// Two systems of the board side by side: the document at /compare, without its page, in the tab.
import { begin } from "./compare.js";
import { load } from "./fragment.js";

export async function start(element) {
  const place = element.querySelector(".podeval-part");
  let latest = "";
  async function show(address) {
    if (address === latest || !(await load(place, (latest = address), { wanted: () => address === latest }))) return;
    place.querySelector("#compare-data") ? begin(place) : (latest = "");
  }
  const ask = (form) => show(`/compare?${new URLSearchParams(new FormData(form))}`);
  // Once two are chosen they are shown.
  place.addEventListener("change", ({ target }) => { if (target.required && target.form.checkValidity()) ask(target.form); });
  place.addEventListener("click", (event) => {
    const address = event.target.closest("a[href^='/compare?']:not([target])")?.getAttribute("href");
    if (!address) return;
    event.preventDefault();
    show(address);
  });
  place.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(event.target);
  });
  show("/compare");
}
