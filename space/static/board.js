// The view of the leaderboard: every choice is an address; the server sends the view that belongs to it.
let asked = null;
let failed = null;
let current = "";
let view, plots, problem, loading;
const wide = matchMedia("(min-width: 56rem)");

async function show(target, how) {
  if (asked) asked.abort();
  const own = new AbortController();
  asked = own;
  const slow = setTimeout(() => {
    view.setAttribute("aria-busy", "true");
    loading.textContent = loading.dataset.loading;
  }, 250);
  try {
    const answer = await fetch(target, { headers: { "X-Podeval-Part": wide.matches ? "wide view" : "view" }, signal: own.signal });
    const content = await answer.text();
    const refusal = answer.status === 429 ? JSON.parse(content) : {};
    if (!answer.ok) throw new Error(refusal.sentence ?? refusal.error ?? problem.dataset.failed);
    if (own.signal.aborted) return;
    replace(content);
    failed = null;
    problem.hidden = true;
    current = target;
    if (how === "push") history.pushState(null, "", target);
    if (how === "replace") history.replaceState(null, "", target);
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

// What had the focus has it again, and what was open stays open.
function replace(content) {
  const unfolded = document.getElementById("fold-controls")?.getAttribute("aria-expanded") === "true";
  stop();
  const focused = document.activeElement && document.activeElement.id;
  const open = [...document.querySelectorAll("#view details[open], #board-plots details[open]")].map((details) => details.id);
  const parsed = new DOMParser().parseFromString(content, "text/html");
  const drawn = parsed.getElementById("drawn");
  document.getElementById("early")?.remove();
  plots = document.querySelector("#board-plots .podeval-part");
  plots?.replaceChildren(...(drawn ? [drawn] : []));
  view.replaceChildren(...parsed.body.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (unfolded) fold(document.getElementById("fold-controls"));
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
}

function toggle(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  return open;
}
const fold = (button) => { if (button) document.getElementById("controls").hidden = !toggle(button); };

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

function click(event, trigger) {
  const link = event.target.closest("a[data-view]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    show(link.getAttribute("href"), "push");
    trigger("select", { address: link.getAttribute("href") });
  }
  const play = event.target.closest("button.hear");
  if (play) hear(play);
  if (event.target.id === "fold-controls") fold(event.target);
  if (event.target.id === "copy") copy(event.target);
}

/** Begin in the element of the component; `trigger` says the fields which link was followed, `watch` what they say. */
export function start(element, props, trigger, watch) {
  view = element.querySelector("#view");
  problem = element.querySelector("#board-problem");
  loading = element.querySelector("#board-loading");
  plots = document.querySelector("#board-plots .podeval-part");
  for (const place of [element, plots]) place?.addEventListener("click", (event) => click(event, trigger));
  problem.querySelector("button").addEventListener("click", () => failed && show(...failed));
  wide.addEventListener("change", () => current && show(current, "stay"));
  document.addEventListener("podeval:tab", stop);
  document.getElementById("fold-choices")?.addEventListener("click", (event) => {
    document.documentElement.dataset.choices = toggle(event.currentTarget) ? "open" : "";
  });
  watch("value", () => show(`/?${props.value.query}`, props.value.how));
  addEventListener("popstate", () => {
    if (!["/", "/leaderboard"].includes(location.pathname) || `/${location.search}` === current) return;
    show(`/${location.search}`, "stay");
    trigger("select", { address: `/${location.search}` });
  });
  show(`/${location.search}`, "stay");
}
