// The page of the tabs: the header shows a tab without loading anew, and what Gradio shows is in the page's language.
import { byId } from "./page.js";

const TABS = ["leaderboard", "arena", "score", "submit"];
const entry = (name) => document.querySelector(`.top nav a[href="/${name === TABS[0] ? "" : name}"]`);
const queued = location.pathname === "/queue";
const named = () => TABS.find((name) => location.pathname === `/${name}`) ?? (queued ? "submit" : TABS[0]);
const searches = {};
let shown = named();

/** Show a tab; the others are told, so that what plays there stops. */
function show(name) {
  byId(`tab-${name}-button`).click();
  for (const each of TABS) entry(each).removeAttribute("aria-current");
  entry(name).setAttribute("aria-current", "page");
  document.title = document.title.replace(/^.*(?= · )/, entry(name).textContent);
  shown = name;
  document.dispatchEvent(new CustomEvent("podeval:tab", { detail: name }));
}

addEventListener("click", (event) => {
  const link = event.target.closest?.(".top nav a, .gradio-container a");
  const leads = (each) => link && !link.target && link.getAttribute("href") === entry(each).getAttribute("href");
  const name = TABS.find(leads);
  const elsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  // Until Gradio is there, and in another window, the link is a link.
  if (!name || !byId(`tab-${name}-button`) || event.defaultPrevented || elsewhere) return;
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
  const inside = (part) => part.shadowRoot?.querySelector("audio");
  const own = [...document.querySelectorAll("#score-audio *")].map(inside).find(Boolean);
  const audio = at && (document.querySelector("#score-example audio") ?? own);
  if (audio) Object.assign(audio, { currentTime: Number(at.dataset.t) }).play().catch(() => {});
});

const problem = () => document.querySelector(`#${shown}-problem [role], #${shown}-recordings [role]`);
for (const kind of ["change", "drop"]) {
  addEventListener(kind, ({ target }) => {
    if (target.type === "file" || kind === "drop") problem()?.replaceChildren();
  }, true);
}

// What Gradio has in English alone, by its beginning, and what is said in its place.
const words = JSON.parse(byId("gradio-words")?.textContent ?? "[]");

/** Say in our words what a toast says, and what is wrong with an upload also here, where it stays. */
function translate(toast) {
  const large = /^File\(s\) exceed|HTTP 413/.test(toast.textContent) && window.gradio_config.too_large?.[shown];
  const own = large || words.find(([begins]) => toast.textContent.trim().startsWith(begins))?.[1];
  // The very node, which Gradio may write to again.
  const node = [...toast.childNodes].find((each) => each.nodeType === 3 && each.data.trim()) ?? toast;
  if (own && node.textContent !== own) node.textContent = own;
}

new MutationObserver(() => {
  document.querySelectorAll(".toast-body :is([class*=-title], [class*=-text])").forEach(translate);
  const error = document.querySelector(".toast-body.error [class*=-text]")?.textContent;
  if (error && problem() && problem().textContent !== error) problem().textContent = error;
  const main = document.querySelector("gradio-app main:not(#content)");
  if (main) Object.assign(main, { id: "content", tabIndex: -1 });
  if (queued && byId("queue") && !searches.queue) byId("queue").scrollIntoView(searches.queue = true);
}).observe(document.body, { childList: true, characterData: true, subtree: true });
