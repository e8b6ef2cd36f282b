// The board without reloading the page: every choice is an address; the server sends the view that belongs to it.
// Without this script the same form and links load whole pages.
"use strict";

const view = document.getElementById("view");
const problem = document.getElementById("problem");
const loading = document.getElementById("loading");
const MULTIPLE = ["openness", "size", "licence", "language", "provenance", "columns", "protocols"];
let asked = null;
let timer = 0;
let failed = null;

function address() {
  const form = document.getElementById("choices");
  const sent = new FormData(form);
  const query = new URLSearchParams();
  for (const name of new Set(sent.keys())) {
    const values = sent.getAll(name).filter((value) => value !== "");
    if (values.length) query.set(name, MULTIPLE.includes(name) ? values.join(",") : values[0]);
  }
  const language = new URLSearchParams(location.search).get("lang");
  if (language) query.set("lang", language);
  return `/?${query}`;
}

async function show(target, how) {
  if (asked) asked.abort();
  const own = new AbortController();
  asked = own;
  const slow = setTimeout(() => {
    view.setAttribute("aria-busy", "true");
    loading.textContent = loading.dataset.loading;
  }, 250);
  try {
    const answer = await fetch(target, { headers: { "X-Podeval-Part": "view" }, signal: own.signal });
    const content = await answer.text();
    if (!answer.ok) throw new Error(answer.status === 429 ? content : problem.dataset.failed);
    if (own.signal.aborted) return;
    replace(content);
    failed = null;
    problem.hidden = true;
    if (how === "push") history.pushState(null, "", target);
    if (how === "replace") history.replaceState(null, "", target);
    whole();
  } catch (error) {
    if (error.name === "AbortError") return;
    failed = [target, how];
    problem.firstElementChild.textContent = error instanceof TypeError ? problem.dataset.offline : sentence(error);
    problem.hidden = false;
  } finally {
    clearTimeout(slow);
    if (asked === own) {
      view.removeAttribute("aria-busy");
      loading.textContent = "";
    }
  }
}

function sentence(error) {
  try {
    return JSON.parse(error.message).error;
  } catch {
    return error.message;
  }
}

// What had the focus has it again, what was open stays open, and the table stays where it was scrolled to.
function replace(content) {
  const focused = document.activeElement && document.activeElement.id;
  const caret = document.activeElement && document.activeElement.selectionStart;
  const typed = focused === "f-q" ? document.activeElement.value : null;
  const open = [...view.querySelectorAll("details[open]")].map((details) => details.id);
  const table = document.getElementById("table");
  const left = table ? table.scrollLeft : 0;
  const parsed = new DOMParser().parseFromString(content, "text/html");
  view.replaceChildren(...parsed.body.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  const next = document.getElementById("table");
  if (next) next.scrollLeft = left;
  const again = focused && document.getElementById(focused);
  if (again) {
    again.focus({ preventScroll: true });
    if (typed !== null) {
      again.value = typed;
      again.setSelectionRange(caret, caret);
    }
  }
}

// The link says the whole address, which only the browser knows behind proxies.
function whole() {
  const link = document.getElementById("link");
  if (link) link.value = new URL(link.value, location.origin + location.pathname).href;
}

view.addEventListener("change", (event) => {
  if (event.target.id === "f-q" || event.target.id === "link") return;
  if (["f-board", "f-profile", "f-dimension"].includes(event.target.id)) {
    // What was chosen among other columns says nothing here.
    for (const ticked of view.querySelectorAll("[name=columns]:checked")) ticked.checked = false;
  }
  show(address(), "push");
});

view.addEventListener("input", (event) => {
  if (event.target.id !== "f-q" || event.isComposing) return;
  clearTimeout(timer);
  timer = setTimeout(() => show(address(), "replace"), 200);
});

view.addEventListener("compositionend", (event) => {
  if (event.target.id !== "f-q") return;
  clearTimeout(timer);
  timer = setTimeout(() => show(address(), "replace"), 200);
});

view.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  show(address(), "push");
});

view.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    show(link.getAttribute("href"), "push");
  }
  if (event.target.id === "copy") copy(event.target);
});

function copy(button) {
  const link = document.getElementById("link");
  link.select();
  const written = navigator.clipboard ? navigator.clipboard.writeText(link.value) : Promise.reject();
  written.catch(() => document.execCommand("copy")).then(() => {
    button.textContent = button.dataset.copied;
  });
}

problem.querySelector("button").addEventListener("click", () => failed && show(...failed));
window.addEventListener("popstate", () => show(location.pathname + location.search, "stay"));
document.documentElement.classList.add("scripted");
whole();
