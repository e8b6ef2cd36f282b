// The page of the tabs: the header shows a tab without loading anew, and what Gradio shows is in the page's language.
import { byId } from "./page.js";

const TABS = ["leaderboard", "arena", "score", "submit"];
const entry = (name) => document.querySelector(`.top nav a[href="/${name === TABS[0] ? "" : name}"]`);
const queued = location.pathname === "/queue";
const find = (path) => TABS.find((name) => path === `/${name}`) ?? { "/": TABS[0], "/queue": "submit" }[path];
let shown = find(location.pathname) ?? TABS[0];
let isAtQueue = false;

/** Show a tab; the others are told, so that what plays there stops. */
function show(name) {
  byId(`tab-${name}-button`).click();
  for (const each of TABS) entry(each).removeAttribute("aria-current");
  entry(name).setAttribute("aria-current", "page");
  document.title = document.title.replace(/^.*(?= · )/, entry(name).textContent);
  shown = name;
  document.dispatchEvent(new CustomEvent("podeval:tab", { detail: name }));
}

// Until Gradio is there, and in an older browser, the link is a link.
window.navigation?.addEventListener("navigate", (event) => {
  const { pathname, search } = new URL(event.destination.url);
  const name = find(pathname);
  // What the address of a tab asks besides, such as a metric, is for the server.
  const asks = search && event.navigationType === "push" && name !== TABS[0];
  if (!name || name === shown || asks || !event.canIntercept || !byId(`tab-${name}-button`)) return;
  event.intercept({ handler: async () => show(name), focusReset: "manual" });
});

// The time of a defect plays from there; Gradio's own player keeps its sound in a shadow root.
addEventListener("click", (event) => {
  const at = event.target.closest?.(".scores [data-t]");
  const inside = (part) => part.shadowRoot?.querySelector("audio");
  const own = [...document.querySelectorAll("#score-audio *")].map(inside).find(Boolean);
  const audio = at && (document.querySelector("#score-example audio") ?? own);
  if (audio) Object.assign(audio, { currentTime: Number(at.dataset.t) }).play().catch(() => {});
});

const problem = () => document.querySelector(`#${shown}-problem [role], #${shown}-recordings [role]`);

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
  if (queued && byId("queue") && !isAtQueue) byId("queue").scrollIntoView(isAtQueue = true);
}).observe(document.body, { childList: true, characterData: true, subtree: true });
