// The page of the tabs: the header shows a tab without loading anew, and what Gradio shows has the colours of the documents.
const TABS = ["leaderboard", "arena", "score", "submit"];
const button = (name) => document.getElementById(`tab-${name}-button`);
const entry = (name) => document.querySelector(`.top nav a[href="/${name === TABS[0] ? "" : name}"]`);
const named = () => (location.pathname === "/queue" ? "submit" : TABS.find((name) => location.pathname === `/${name}`) ?? TABS[0]);
const searches = {};
let shown = named();

/** Show a tab; the others are told, so that what plays there stops. */
function show(name) {
  button(name).click();
  for (const each of TABS) entry(each).removeAttribute("aria-current");
  entry(name).setAttribute("aria-current", "page");
  document.title = document.title.replace(/^.*(?= · )/, entry(name).textContent);
  shown = name;
  document.dispatchEvent(new CustomEvent("podeval:tab", { detail: name }));
}

addEventListener("click", (event) => {
  const link = event.target.closest?.(".top nav a, .gradio-container a");
  const name = TABS.find((each) => link && !link.target && link.getAttribute("href") === entry(each).getAttribute("href"));
  // Until Gradio is there, and in another window, the link is a link.
  if (!name || !button(name) || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (name === shown) return;
  searches[shown] = location.search;
  history.pushState(null, "", `${link.getAttribute("href")}${searches[name] ?? ""}`);
  show(name);
  scrollTo(0, 0);
});
addEventListener("popstate", () => { if (named() !== shown) show(named()); });

// The time of a defect plays from there; Gradio's own player keeps its sound in a shadow root.
addEventListener("click", (event) => {
  const at = event.target.closest?.(".scores [data-t]");
  const inside = [...document.querySelectorAll("#score-audio *")].map((part) => part.shadowRoot?.querySelector("audio"));
  const audio = at && (document.querySelector("#score-example audio") ?? inside.find(Boolean));
  if (audio) { audio.currentTime = Number(at.dataset.t); audio.play().catch(() => {}); }
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
let asked = location.pathname === "/queue";
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
  const queue = asked && document.getElementById("queue");
  if (queue) { asked = false; queue.scrollIntoView(); }
  dress();
}).observe(document.body, { childList: true, characterData: true, subtree: true });
