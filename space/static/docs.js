// The list of documents, as far as an entry has every word that is typed.
import { byId } from "./page.js";

function search() {
  const words = byId("docs-search").value.toLowerCase().split(/\s+/);
  for (const entry of document.querySelectorAll(".docs li")) {
    entry.hidden = !words.every((word) => entry.textContent.toLowerCase().includes(word));
  }
  byId("docs-none").hidden = Boolean(document.querySelector(".docs li:not([hidden])"));
}

byId("docs-search").addEventListener("input", search);
search();
