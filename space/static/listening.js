// A listener's way through a test. Every page is on the server's disk before the next one is shown; what is not sent
// yet is kept in this tab, so that a reload loses nothing.
import * as forms from "./listening_forms.js";
import { byId, fill, keepField, onKey, remember, write } from "./page.js";
import { Deck } from "./player.js";
import { get, insist, pause, post } from "./server.js";

const { test, closed, texts } = JSON.parse(byId("listening-data").textContent);
const asked = new URLSearchParams(location.search);
const [prolific, pid] = [asked.get("PROLIFIC_PID"), asked.get("pid")];
const invitation = prolific ? { prolific } : pid ? { pid } : {};
let stands = null;
let here = null;

/** What this tab remembers of the session. */
const memory = (what, value) =>
  remember("sessionStorage", `podeval-listening ${stands?.session ?? test} ${what}`, value);

function view(name) {
  if (name !== "page") leave();
  for (const section of byId("listening").querySelectorAll(":scope > section")) section.hidden = section.id !== name;
  byId("status").hidden = true;
  byId("listening").dataset.state = name;
  if (name !== "intro") byId("level")?.pause();
  byId(name === "page" ? "page-title" : name).focus();
  scrollTo(0, 0);
}

function trouble(title, sentence, again) {
  write({ "trouble-title": title, "trouble-text": sentence });
  Object.assign(byId("retry"), { hidden: !again, textContent: texts.retry, onclick: again });
  view("trouble");
}

/** Ask until there is an answer, and say in an element what is waited for. */
const persist = (place, ask) => insist(ask, (sentence) => {
  Object.assign(place, { hidden: sentence === "" && place.hidden, textContent: sentence ?? texts.offline });
});
const sessions = (more) => persist(byId("status"), () => post(`/listen/${test}/sessions`, { ...invitation, ...more }));
const inSession = (rest) => `/listen/sessions/${stands.session}/${rest}`;

/** Do by a button what the server answers with how the listener stands: nowhere, before they began. */
async function attempt(button, ask) {
  button.disabled = true;
  try {
    stands = await ask();
    if (stands) goOn();
    else if (closed) trouble(texts.closed_title, texts.closed);
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
  if (stands.code) return finish();
  if (!stands.saved.length && !memory("begun")) return view("intro");
  const at = memory("at") ?? stands.next;
  return at === null || at === "end" ? view("complete") : open(Math.min(at, stands.pages - 1));
}

function finish() {
  write({ code: stands.code });
  if (stands.saved.length < stands.pages) write({ "done-text": texts.turned_away });
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
    write({ countdown: fill(texts.returning, { seconds: left }) });
    await pause(1000);
  }
  memory("returned", true);
  byId("stay").hidden = true;
  write({ countdown: texts.stays });
  if (!stays) byId("go").click();
}

function leave() {
  keep();
  for (const track of here?.deck.tracks.values() ?? []) track.wait();
  here = null;
}

/** Seconds on this page, those before a reload among them. */
const spend = () => here.before + (performance.now() - here.since) / 1000;

function keep() {
  if (!here || here.sent) return;
  const heard = {};
  for (const [key, { stretches, share }] of here.deck.tracks) heard[key] = { stretches, share };
  memory(`page ${here.number}`, { answer: forms.read(byId("answers")), heard, seconds: spend() });
}

async function open(number) {
  leave();
  let shown;
  try {
    shown = await persist(byId(byId("page").hidden ? "status" : "saving"), () => get(inSession(`pages/${number}`)));
  } catch (error) {
    return trouble(texts.trouble, error.message, () => open(number));
  }
  const draft = memory(`page ${number}`);
  const form = byId("answers");
  form.innerHTML = shown.form;
  const deck = new Deck(texts, { together: Boolean(byId("repeat")), step: 2, changed: keep });
  for (const card of form.querySelectorAll(".track")) {
    const { key, audio, peaks, seconds } = card.dataset;
    const heard = draft?.heard?.[key] ?? { share: shown.saved?.heard?.[key] };
    deck.add(key, card).take(audio, peaks, Number(seconds), heard);
  }
  const box = byId("repeat");
  const repeat = () => { for (const { sound } of deck.tracks.values()) sound.loop = box.checked; };
  if (box) keepField(box, "podeval.repeat", repeat);
  forms.begin(form, texts, draft?.answer ?? shown.saved?.answer);
  here = { number, shown, deck, before: draft?.seconds ?? 0, since: performance.now(), sent: false };
  memory("at", number);
  Object.assign(byId("progress"), { max: stands.pages, value: stands.saved.length });
  write({ "page-title": fill(texts.page, { number: number + 1, of: stands.pages, title: shown.title }) });
  byId("previous").disabled = number === 0;
  write({ problem: "" });
  view("page");
}

/** Recordings that are not heard far enough: to the share that the test asks for, or at all. */
function listUnheard({ shown, deck }) {
  return [...deck.tracks.values()].filter(({ key, share }) =>
    key !== "prompt" && (key === "reference" || !shown.heard ? share <= 0 : share < shown.heard));
}

async function send(event) {
  event.preventDefault();
  if (!here || here.busy) return;
  const page = here;
  const { shown, deck } = page;
  const unheard = listUnheard(page);
  if (unheard.length) {
    const what = unheard.map(({ root }) => root.getAttribute("aria-label")).join(", ");
    const sentence = shown.heard ? texts.unheard_share : texts.unheard;
    write({ problem: fill(sentence, { what, share: Math.round(100 * shown.heard) }) });
    unheard[0].button.focus();
    return;
  }
  const open = forms.point(byId("answers"));
  write({ problem: open.length ? fill(texts.missing, { what: open.join(" · ") }) : "" });
  if (open.length) return;
  page.busy = true;
  keep();
  byId("next").disabled = true;
  write({ saving: texts.saving });
  const letters = Object.keys(shown.stimuli).filter((key) => deck.tracks.has(key));
  const heard = Object.fromEntries(letters.map((key) => [key, deck.tracks.get(key).share]));
  const answer = { answer: forms.read(byId("answers"), true), heard, seconds: spend() };
  try {
    stands = await persist(byId("saving"), () => post(inSession(`pages/${page.number}`), answer));
    page.sent = true;
    memory(`page ${page.number}`, null);
    memory("at", page.number + 1 < stands.pages ? page.number + 1 : stands.next ?? "end");
    await goOn();
    write({ saving: fill(texts.saved, { number: page.number + 1 }) });
  } catch (error) {
    write({ saving: "", problem: error.message });
  } finally {
    page.busy = false;
    byId("next").disabled = false;
  }
}

/** Do something at a click, or at what else happens to an element. */
const at = (id, act, kind = "click") => byId(id).addEventListener(kind, act);
at("agree", (event) => {
  event.preventDefault();
  attempt(event.submitter, () => sessions({ consent: byId("agreed").checked }));
}, "submit");
at("to-pages", () => { memory("begun", true); goOn(); });
at("answers", send, "submit");
at("answers", () => { write({ problem: "" }); keep(); }, "input");
at("previous", () => { if (here?.number) open(here.number - 1); });
at("reconsider", () => open(stands.pages - 1));
at("finish", () => attempt(byId("finish"), () => persist(byId("status"), () => post(inSession("finish"), {}))));
at("copy", async () => {
  await navigator.clipboard.writeText(stands.code);
  write({ copied: texts.copied });
});
addEventListener("pagehide", keep);
onKey((key, place) => {
  if (!here) return false;
  const { tracks } = here.deck;
  const letter = key === "r" && tracks.has("reference") ? "reference" : key.toUpperCase();
  // A recording that plays goes on.
  if (!tracks.has(letter)) return here.deck.press(key, place);
  if (!tracks.get(letter).playing) here.deck.play(letter);
  return true;
});
arrive();
