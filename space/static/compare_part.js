// Two systems of the board side by side: the document at /compare, without its page, in the tab.
import { begin } from "./compare.js";
import { load } from "./fragment.js";

export function start(element, props, trigger, watch) {
  const place = element.querySelector(".podeval-part");
  let latest = "";
  async function show(address) {
    if (address === latest || !(await load(place, (latest = address), () => address === latest))) return;
    place.querySelector("#compare-data") ? begin(place) : (latest = "");
  }
  watch("value", () => props.value && show(props.value));
  place.addEventListener("click", (event) => {
    const address = event.target.closest("a[href^='/compare?']:not([target])")?.getAttribute("href");
    if (!address) return;
    event.preventDefault();
    show(address);
  });
  place.addEventListener("submit", (event) => {
    event.preventDefault();
    show(`/compare?${new URLSearchParams(new FormData(event.target))}`);
  });
}
