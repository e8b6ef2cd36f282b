// The page of the tabs: the header switches tabs without reloading, and Gradio's own texts are in the page's language.
import { byId } from "./page.js";

const TABS = ["leaderboard", "arena", "score", "submit"];
const entry = (name) => document.querySelector(`.top nav a[href="/${name === TABS[0] ? "" : name}"]`);
const queued = location.pathname === "/queue";
const find = (path) => TABS.find((name) => path === `/${name}`) ?? { "/": TABS[0], "/queue": "submit" }[path];
let shown = find(location.pathname) ?? TABS[0];
let isAtQueue = false;

/** Show a tab, and notify the others so that sounds playing there stop. */
function show(name) {
  byId(`tab-${name}-button`).click();
  for (const each of TABS) entry(each).removeAttribute("aria-current");
  entry(name).setAttribute("aria-current", "page");
  document.title = document.title.replace(/^.*(?= · )/, entry(name).textContent);
  shown = name;
  document.dispatchEvent(new CustomEvent("podeval:tab", { detail: name }));
}

// Until Gradio is ready, and in older browsers, the link works as an ordinary link.
window.navigation?.addEventListener("navigate", (event) => {
  const { pathname, search } = new URL(event.destination.url);
  const name = find(pathname);
  // The server handles parameters in the address of a tab, such as a metric.
  const asks = search && event.navigationType === "push" && name !== TABS[0];
  if (!name || name === shown || asks || !event.canIntercept || !byId(`tab-${name}-button`)) return;
  event.intercept({ handler: async () => show(name), focusReset: "manual" });
});

// A click on the time of a defect plays from there; Gradio's player keeps its audio element in a shadow root.
addEventListener("click", (event) => {
  const at = event.target.closest?.(".scores [data-t]");
  const inside = (part) => part.shadowRoot?.querySelector("audio");
  const own = [...document.querySelectorAll("#score-audio *")].map(inside).find(Boolean);
  const audio = at && (document.querySelector("#score-example audio") ?? own);
  if (audio) Object.assign(audio, { currentTime: Number(at.dataset.t) }).play().catch(() => {});
});

const problem = () => document.querySelector(`#${shown}-problem [role], #${shown}-recordings [role]`);

// The beginnings of texts that Gradio has only in English, with the texts that replace them.
const words = JSON.parse(byId("gradio-words")?.textContent ?? "[]");

/** Replace the text of a toast with ours; also show the fault of an upload here, where it stays visible. */
function translate(toast) {
  const large = /^File\(s\) exceed|HTTP 413/.test(toast.textContent) && window.gradio_config.too_large?.[shown];
  const own = large || words.find(([begins]) => toast.textContent.trim().startsWith(begins))?.[1];
  // Change this node itself, because Gradio may write to it again.
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
