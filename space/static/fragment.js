// The content of a part, as the site sends it to this person.
const PAUSE = 1_000;

/** Put HTML of the server, in which strangers' words are escaped, into an element; gives the element. What had the focus has it again. */
export function fillIn(element, content) {
  const focused = document.activeElement?.id;
  element.replaceChildren(...new DOMParser().parseFromString(content, "text/html").body.childNodes);
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
  return element;
}

/** Put what an address says into an element, asked for again until it is answered; gives the element, or nothing once it is no longer wanted. */
export async function load(element, address, { wanted = () => true, part = "1" } = {}) {
  while (wanted()) {
    try {
      const answer = await fetch(address, { headers: { "X-Podeval-Part": part }, cache: "no-store" });
      const content = answer.headers.get("Content-Type")?.startsWith("text/html") ? await answer.text() : "";
      if (!content) throw new Error(String(answer.status));
      return wanted() ? fillIn(element, content) : null;
    } catch {
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }
  return null;
}

/** Fill the part by its address, else with its value; again once that changes, its tab comes to the front or a button asks. */
export function start(element, props, trigger, watch) {
  const place = element.querySelector(".podeval-part");
  const again = () => (props.address ? load(place, props.address) : fillIn(place.firstElementChild, props.value ?? ""));
  watch("value", again);
  document.addEventListener("podeval:tab", ({ detail }) => { if (detail === props.tab) again(); });
  place.addEventListener("click", (event) => { if (event.target.closest("[data-again]")) again(); });
  again();
}
