// The leaderboard: every choice is an address; the server sends the view that belongs to it.
import { load } from "./fragment.js";

const PLACES = ["board", "profile"]; // fields whose change leaves no column chosen: those before were of other figures
let asked, failed, current, view, problem, loading;
const wide = matchMedia("(min-width: 56rem)");
const part = () => (wide.matches ? "wide view" : "view");

async function show(target, how) {
  if (asked) asked.abort();
  const own = new AbortController();
  asked = own;
  const slow = setTimeout(() => {
    view.setAttribute("aria-busy", "true");
    loading.textContent = loading.dataset.loading;
  }, 250);
  try {
    const answer = await fetch(target, { headers: { "X-Podeval-Part": part() }, signal: own.signal });
    const content = await answer.text();
    const refusal = answer.status === 429 ? JSON.parse(content) : {};
    if (!answer.ok) throw new Error(refusal.sentence ?? refusal.error ?? problem.dataset.failed);
    if (own.signal.aborted) return;
    const next = new DOMParser().parseFromString(content, "text/html");
    replace(next, how);
    failed = null;
    problem.hidden = true;
    const address = next.getElementById("choices").dataset.address;
    if (how === "push" && address !== current) history.pushState(null, "", address);
    if (how === "replace") history.replaceState(null, "", address);
    current = address;
    whole();
  } catch (error) {
    if (error.name === "AbortError") return;
    failed = [target, how];
    problem.firstElementChild.textContent = error instanceof TypeError ? problem.dataset.offline : error.message;
    problem.hidden = false;
  } finally {
    clearTimeout(slow);
    if (asked === own) {
      view.removeAttribute("aria-busy");
      loading.textContent = "";
    }
  }
}

// What had the focus has it again, what was open stays open, and what is being typed is left to its reader.
function replace(next, how) {
  const unfolded = document.getElementById("fold-controls")?.getAttribute("aria-expanded") === "true";
  stop();
  const focused = document.activeElement && document.activeElement.id;
  const open = [...document.querySelectorAll("#view details[open]")].map((details) => details.id);
  for (const field of next.querySelectorAll("#choices .field")) {
    if (how !== "replace" || field.id !== "f-q") document.getElementById(field.id).replaceWith(field);
  }
  view.replaceChildren(...next.getElementById("view").childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (unfolded) fold(document.getElementById("fold-controls"));
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
}

function fold(button) {
  const closed = button?.getAttribute("aria-expanded") === "true";
  button?.setAttribute("aria-expanded", String(!closed));
  if (button) document.getElementById("controls").hidden = closed;
}

// One sample at a time, which stops when another begins, when the view changes, or when it is over.
let sound = null;
let heard = null;

function stop() {
  sound?.pause();
  heard?.setAttribute("aria-pressed", "false");
  if (heard) heard.firstElementChild.textContent = "▶";
  heard = null;
}

function hear(button) {
  const again = button === heard;
  stop();
  if (again) return;
  sound ??= new Audio();
  sound.onended = stop;
  sound.onerror = stop;
  sound.src = button.dataset.sound;
  heard = button;
  button.setAttribute("aria-pressed", "true");
  button.firstElementChild.textContent = "❚❚";
  sound.play().catch(() => heard === button && stop());
}

// The link says the whole address, which only the browser knows behind proxies.
function whole() {
  const link = document.getElementById("link");
  if (link) link.value = new URL(link.value, location.origin + location.pathname).href;
}

function copy(button) {
  const link = document.getElementById("link");
  link.select();
  const written = navigator.clipboard ? navigator.clipboard.writeText(link.value) : Promise.reject();
  written.catch(() => document.execCommand("copy")).then(() => { button.textContent = button.dataset.copied; });
}

function click(event) {
  const link = event.target.closest("a[data-view]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    show(link.getAttribute("href"), "push");
  }
  const play = event.target.closest("button.hear");
  if (play) hear(play);
  if (event.target.id === "fold-controls") fold(event.target);
  if (event.target.id === "copy") copy(event.target);
}

function choose({ target, isComposing }) {
  if (isComposing || target.form?.id !== "choices") return;
  const said = new URLSearchParams(new FormData(target.form));
  if (PLACES.includes(target.name)) said.delete("columns");
  show(`/?${said}`, target.name === "q" ? "replace" : "push");
}

/** Begin in the element of the component. */
export async function start(element) {
  const place = await load(element.querySelector(".podeval-part"), `/${location.search}`, { part: part() });
  document.getElementById("early")?.remove();
  if (!place.querySelector("#choices")) return;
  view = place.querySelector("#view");
  problem = place.querySelector("#board-problem");
  loading = place.querySelector("#board-loading");
  current = `/${location.search}`;
  whole();
  place.addEventListener("click", click);
  place.addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["input", "compositionend"]) place.addEventListener(kind, choose);
  problem.querySelector("button").addEventListener("click", () => failed && show(...failed));
  wide.addEventListener("change", () => show(current, "stay"));
  document.addEventListener("podeval:tab", stop);
  addEventListener("popstate", () => {
    if (!["/", "/leaderboard"].includes(location.pathname) || `/${location.search}` === current) return;
    show(`/${location.search}`, "stay");
  });
}
