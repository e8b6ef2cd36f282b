// A listener's way through a test. Every page is on the server's disk before the next one is shown; what is not sent yet is
// kept in this tab, so that a reload loses nothing.
import { get, insist, pause, post, remember } from "/own/arena_wire.js";
import * as forms from "/own/listening_forms.js";
import { Deck, fill } from "/own/player.js";

const data = JSON.parse(document.getElementById("listening-data").textContent);
const texts = data.texts;
const byId = (id) => document.getElementById(id);
const asked = new URLSearchParams(location.search);
const invitation = Object.fromEntries(
  [["prolific", asked.get("PROLIFIC_PID")], ["pid", asked.get("PROLIFIC_PID") ? null : asked.get("pid")]].filter(([, value]) => value),
);
const VIEWS = ["consent", "intro", "page", "complete", "done", "trouble"];
let stands = null;
let here = null;

/** What this tab remembers of the session. */
const memory = (what, value) => remember("sessionStorage", `podeval-listening ${stands?.session ?? data.test} ${what}`, value);

function view(name) {
  if (name !== "page") leave();
  for (const other of VIEWS) byId(other).hidden = other !== name;
  byId("status").hidden = true;
  byId("listening").dataset.state = name;
  if (name !== "intro") byId("level")?.pause();
  (name === "page" ? byId("page-title") : byId(name)).focus();
  scrollTo(0, 0);
}

function trouble(title, sentence, again) {
  byId("trouble-title").textContent = title;
  byId("trouble-text").textContent = sentence;
  const button = byId("retry");
  button.hidden = !again;
  button.textContent = texts.retry;
  button.onclick = again;
  view("trouble");
}

/** Say in an element what is waited for. */
const sayIn = (place) => (sentence) => Object.assign(place, { hidden: sentence === "" && place.hidden, textContent: sentence ?? texts.offline });

const sessions = (more) => insist(() => post(`/listen/${data.test}/sessions`, { ...invitation, ...more }), sayIn(byId("status")));
const inSession = (rest) => `/listen/sessions/${stands.session}/${rest}`;

/** Do by a button what the server answers with how the listener stands: nowhere, before they began. */
async function attempt(button, ask) {
  button.disabled = true;
  try {
    stands = await ask();
    if (stands) goOn();
    else if (data.closed) trouble(texts.closed_title, texts.closed);
    else view("consent");
  } catch (error) {
    trouble(texts.trouble, error.message, arrive);
  } finally {
    button.disabled = false;
  }
}

const arrive = () => attempt(byId("retry"), () => sessions({}));

/** To where the listener was: the code, the page of this tab, the first page that is not saved. */
function goOn() {
  if (stands.code) return done();
  if (!stands.saved.length && !memory("begun")) return view("intro");
  const at = memory("at") ?? stands.next;
  return at === null || at === "end" ? view("complete") : open(Math.min(at, stands.pages - 1));
}

function done() {
  byId("code").textContent = stands.code;
  if (stands.saved.length < stands.pages) byId("done-text").textContent = texts.turned_away;
  byId("copy").hidden = !navigator.clipboard;
  view("done");
  if (stands.back) goBack(stands.back);
}

/** To the panel that sent them, by itself after some seconds, once, unless they stay. */
async function goBack({ address, seconds }) {
  let stays = memory("returned");
  byId("panel").hidden = false;
  byId("go").href = address;
  byId("stay").onclick = () => { stays = true; byId("go").focus(); };
  for (let left = seconds; left && !stays; left--) {
    byId("countdown").textContent = fill(texts.returning, { seconds: left });
    await pause(1000);
  }
  memory("returned", true);
  byId("stay").hidden = true;
  byId("countdown").textContent = texts.stays;
  if (!stays) byId("go").click();
}

function leave() {
  if (!here) return;
  keep();
  here.deck.leave();
  here = null;
}

/** Seconds on this page, those before a reload among them. */
const spent = () => here.before + (performance.now() - here.since) / 1000;

function keep() {
  if (!here || here.sent) return;
  memory(`page ${here.number}`, { answer: forms.read(byId("answers")).partial, heard: here.deck.heard(), seconds: spent() });
}

async function open(number) {
  leave();
  let shown;
  try {
    shown = await insist(() => get(inSession(`pages/${number}`)), sayIn(byId(byId("page").hidden ? "status" : "saving")));
  } catch (error) {
    return trouble(texts.trouble, error.message, () => open(number));
  }
  const draft = memory(`page ${number}`);
  const form = byId("answers");
  form.innerHTML = shown.form;
  const deck = new Deck(texts, Boolean(byId("repeat")), keep);
  for (const card of form.querySelectorAll(".track")) {
    const { key } = card.dataset;
    deck.add(card, draft?.heard?.[key] ?? { share: shown.saved?.heard?.[key] });
  }
  if (deck.together) {
    byId("repeat").checked = memory("repeat") ?? false;
    byId("repeat").addEventListener("change", (event) => { deck.repeat(event.target.checked); memory("repeat", event.target.checked); });
    deck.repeat(byId("repeat").checked);
  }
  forms.begin(form, texts, draft?.answer ?? shown.saved?.answer);
  here = { number, shown, deck, before: draft?.seconds ?? 0, since: performance.now(), sent: false };
  memory("at", number);
  byId("progress").max = stands.pages;
  byId("progress").value = stands.saved.length;
  byId("page-title").textContent = fill(texts.page, { number: number + 1, of: stands.pages, title: shown.title });
  byId("previous").disabled = number === 0;
  byId("problem").hidden = true;
  view("page");
}

function complain(sentence) {
  byId("problem").hidden = !sentence;
  byId("problem").textContent = sentence ?? "";
}

/** Sounds that are not heard far enough: the share the test asks for, or at all. */
function unheard() {
  const needed = here.shown.heard;
  return [...here.deck.tracks.keys()].filter((key) => key !== "prompt").filter((key) => {
    const share = here.deck.tracks.get(key).share;
    return key === "reference" || !needed ? share <= 0 : share < needed;
  });
}

async function send(event) {
  event.preventDefault();
  if (!here || here.busy) return;
  const { answer, open: missing } = forms.read(byId("answers"));
  const silent = unheard();
  if (silent.length) {
    const names = silent.map((key) => here.deck.tracks.get(key).root.getAttribute("aria-label")).join(", ");
    complain(fill(here.shown.heard ? texts.unheard_share : texts.unheard, { what: names, share: Math.round(100 * here.shown.heard) }));
    here.deck.tracks.get(silent[0]).button.focus();
    return;
  }
  if (missing.length) {
    complain(fill(texts.missing, { what: missing.map((question) => question.dataset.label).join(" · ") }));
    forms.point(missing);
    return;
  }
  complain(null);
  here.busy = true;
  keep();
  byId("next").disabled = true;
  byId("saving").textContent = texts.saving;
  const letters = Object.keys(here.shown.stimuli).filter((key) => here.deck.tracks.has(key));
  const heard = Object.fromEntries(letters.map((key) => [key, here.deck.tracks.get(key).share]));
  const page = here;
  try {
    stands = await insist(() => post(inSession(`pages/${page.number}`), { answer, heard, seconds: spent() }), sayIn(byId("saving")));
    page.sent = true;
    memory(`page ${page.number}`, null);
    memory("at", page.number + 1 < stands.pages ? page.number + 1 : stands.next ?? "end");
    await goOn();
    byId("saving").textContent = fill(texts.saved, { number: page.number + 1 });
  } catch (error) {
    byId("saving").textContent = "";
    complain(error.message);
  } finally {
    page.busy = false;
    byId("next").disabled = false;
  }
}

byId("agree").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(byId("agree").querySelector("button"), () => sessions({ consent: byId("agreed").checked }));
});
byId("to-pages").addEventListener("click", () => { memory("begun", true); goOn(); });
byId("answers").addEventListener("submit", send);
byId("answers").addEventListener("input", () => { complain(null); keep(); });
byId("previous").addEventListener("click", () => { if (here?.number) open(here.number - 1); });
byId("reconsider").addEventListener("click", () => open(stands.pages - 1));
byId("finish").addEventListener("click", () =>
  attempt(byId("finish"), () => insist(() => post(inSession("finish"), {}), sayIn(byId("status")))));
byId("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(byId("code").textContent);
  byId("copied").textContent = texts.copied;
});
addEventListener("pagehide", keep);
addEventListener("keydown", (event) => {
  if (!here || event.altKey || event.ctrlKey || event.metaKey || !byId("shortcuts-on")?.checked) return;
  const target = event.target;
  const range = target.matches?.("input[type=range]");
  if (target.matches?.("textarea, select, input:not([type=range], [type=radio], [type=checkbox])")) return;
  if (event.key === " ") {
    if (target.matches?.("button, a, summary, input:not([type=range]), audio") && !range) return;
    here.deck.again();
    event.preventDefault();
    return;
  }
  const key = event.key.toUpperCase() === "R" && here.deck.tracks.has("reference") ? "reference" : event.key.toUpperCase();
  if (!here.deck.tracks.has(key)) return;
  if (!(here.deck.current === key && here.deck.playing)) here.deck.play(key);
  event.preventDefault();
});
arrive();
