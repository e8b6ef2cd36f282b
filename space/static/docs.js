// The list of documents, as far as an entry has every word that is typed.
const field = document.getElementById("docs-search");

function search() {
  const words = field.value.toLowerCase().split(/\s+/);
  for (const group of document.querySelectorAll(".docs-group")) {
    const entries = [...group.querySelectorAll("li")];
    for (const entry of entries) entry.hidden = !words.every((word) => entry.textContent.toLowerCase().includes(word));
    group.hidden = entries.every((entry) => entry.hidden);
  }
  document.getElementById("docs-none").hidden = !!document.querySelector(".docs-group:not([hidden])");
}

field.addEventListener("input", search);
search();
