// The content of a part, as the site sends it to this person.
const PAUSE = 1_000;

/** Put what an address says into an element, asked for again until it is answered; gives the element. */
export async function load(element, address) {
  for (;;) {
    try {
      const answer = await fetch(address, { headers: { "X-Podeval-Part": "1" }, cache: "no-store" });
      const content = answer.headers.get("Content-Type")?.startsWith("text/html") ? await answer.text() : "";
      if (!content) throw new Error(String(answer.status));
      const parsed = new DOMParser().parseFromString(content, "text/html");
      element.replaceChildren(...parsed.body.childNodes);
      return element;
    } catch {
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  }
}

export const start = (element, props) => load(element.querySelector(".podeval-part"), props.address);
