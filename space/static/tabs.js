// The page of the tabs: each tab is an address, and what Gradio shows has the colours of the documents.
const TABS = ["leaderboard", "arena", "score", "submit", "queue", "about"];
const button = (name) => document.getElementById(`tab-${name}-button`);
const named = () => TABS.find((name) => location.pathname === `/${name}`) ?? TABS[0];
const searches = {};
let shown = named();

/** Show a tab; the others are told, so that what plays there stops. */
function show(name) {
  shown = name;
  document.dispatchEvent(new CustomEvent("podeval:tab", { detail: name }));
}

addEventListener("click", (event) => {
  const name = TABS.find((each) => event.target.closest?.("[role=tab]")?.id === `tab-${each}-button`);
  if (!name || name === shown) return;
  searches[shown] = location.search;
  show(name);
  history.pushState(null, "", `/${name === TABS[0] ? "" : name}${searches[name] ?? ""}`);
});
addEventListener("popstate", () => {
  if (named() === shown) return;
  show(named());
  button(shown)?.click();
});
// The arrow keys go from tab to tab, as in any row of tabs; Gradio has the Tab key alone.
addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const at = TABS.findIndex((each) => event.target.id === `tab-${each}-button`);
  if (step && at >= 0) button(TABS.at((at + step) % TABS.length)).focus();
});

const problem = () => document.querySelector(`#${shown}-problem [role], #${shown}-recordings [role]`);
for (const kind of ["change", "drop"]) {
  addEventListener(kind, (event) => { if (event.target.type === "file" || kind === "drop") problem()?.replaceChildren(); }, true);
}

// Gradio decides on dark by itself; parts follow it.
const dress = () => { document.documentElement.dataset.theme = document.body.classList.contains("dark") ? "dark" : "light"; };
new MutationObserver(dress).observe(document.body, { attributes: true, attributeFilter: ["class"] });
// What Gradio has in English alone, by its beginning, and what is said in its place.
const words = JSON.parse(document.getElementById("gradio-words")?.textContent ?? "[]");
new MutationObserver(() => {
  // What is too large is said in our words; and what Gradio says of an upload passes, but stays here.
  for (const toast of document.querySelectorAll(".toast-body.error [class*=-text]")) {
    const told = /^File\(s\) exceed|HTTP 413/.test(toast.textContent) && window.gradio_config.too_large?.[shown];
    if (told && toast.textContent !== told) toast.textContent = told;
  }
  for (const said of document.querySelectorAll(".toast-body [class*=-title], .toast-body [class*=-text]")) {
    const [, own] = words.find(([begins]) => said.textContent.trim().startsWith(begins)) ?? [];
    // The very node, which Gradio may write to again.
    if (own) ([...said.childNodes].find((each) => each.nodeType === 3 && each.data.trim()) ?? said).textContent = own;
  }
  const toast = document.querySelector(".toast-body.error [class*=-text]");
  if (toast && problem() && problem().textContent !== toast.textContent) problem().textContent = toast.textContent;
  const main = document.querySelector("gradio-app main:not(#content)");
  if (main) Object.assign(main, { id: "content", tabIndex: -1 });
  dress();
}).observe(document.body, { childList: true, characterData: true, subtree: true });
