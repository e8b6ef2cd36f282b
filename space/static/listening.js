// A page of a listening test. The server shows where a listener stands; it has an answer on its disk before it shows
// the next page, and until then this tab keeps it, so that a reload loses nothing.
import * as forms from "./listening_forms.js";
import { byId, fill, keepField, onKey, remember, write } from "./page.js";
import { Deck } from "./player.js";
import { insist, pause, post } from "./server.js";

const { test, session, shown, back, texts } = JSON.parse(byId("listening-data").textContent);
const begun = performance.now();
const form = byId("answers");
const memory = (what, value) => remember("sessionStorage", `podeval-listening ${session} ${what}`, value);
const draft = shown && memory(`page ${shown.number}`);
const deck = new Deck(texts, { together: Boolean(byId("repeat")), step: 2, changed: keep });
const on = (id, kind, act) => byId(id)?.addEventListener(kind, act);

/** Send by a button, until there is an answer, which says how the listener stands now; then act on it. */
async function send(button, address, content, act = () => location.reload()) {
  button.disabled = true;
  write({ problem: "", saving: texts.saving });
  try {
    act(await insist(() => post(address, content), (sentence) => write({ saving: sentence ?? texts.offline })));
  } catch (error) {
    write({ problem: error.message, saving: "" });
  } finally {
    button.disabled = false;
  }
}

/** To the panel that sent them, by itself after some seconds, once, unless they stay. */
async function goBack() {
  let stays = memory("returned");
  byId("stay").onclick = () => { stays = true; byId("go").focus(); };
  for (let left = back.seconds; left && !stays; left--) {
    write({ countdown: fill(texts.returning, { seconds: left }) });
    await pause(1000);
  }
  memory("returned", true);
  byId("stay").hidden = true;
  write({ countdown: texts.stays });
  if (!stays) byId("go").click();
}

/** Seconds on this page, those before a reload among them. */
const spend = () => (draft?.seconds ?? 0) + (performance.now() - begun) / 1000;
const listHeard = (describe) => Object.fromEntries([...deck.tracks].map(([key, track]) => [key, describe(track)]));

function keep() {
  const heard = listHeard(({ stretches, share }) => ({ stretches, share }));
  if (shown) memory(`page ${shown.number}`, { answer: forms.read(form), heard, seconds: spend() });
}

function open() {
  for (const card of form.querySelectorAll(".track")) {
    const { key, audio, peaks, seconds } = card.dataset;
    const heard = draft?.heard?.[key] ?? { share: shown.saved?.heard?.[key] };
    deck.add(key, card).take(audio, peaks, Number(seconds), heard);
  }
  const box = byId("repeat");
  if (box) keepField(box, "podeval.repeat", () => deck.tracks.forEach(({ sound }) => { sound.loop = box.checked; }));
  forms.begin(form, texts, draft?.answer ?? shown.saved?.answer);
  addEventListener("pagehide", keep);
}

/** Why a page is not complete, "" where it is: a recording not heard as far as the test asks, or a question open. */
function findProblem() {
  const unheard = [...deck.tracks.values()].filter(({ key, share }) =>
    key !== "prompt" && (key === "reference" || !shown.heard ? share <= 0 : share < shown.heard));
  const missing = unheard.length ? [] : forms.point(form);
  unheard[0]?.button.focus();
  const what = unheard.map(({ root }) => root.getAttribute("aria-label")).join(", ") || missing.join(" · ");
  const sentence = missing.length ? texts.missing : shown.heard ? texts.unheard_share : texts.unheard;
  return what && fill(sentence, { what, share: Math.round(100 * shown.heard) });
}

on("agree", "submit", (event) => {
  event.preventDefault();
  const asked = new URLSearchParams(location.search);
  const [prolific, pid] = [asked.get("PROLIFIC_PID"), asked.get("pid")];
  const invitation = prolific ? { prolific } : pid ? { pid } : {};
  send(event.submitter, `/listen/${test}/sessions`, { ...invitation, consent: byId("agreed").checked });
});
on("answers", "input", () => { write({ problem: "" }); keep(); });
on("answers", "submit", (event) => {
  event.preventDefault();
  const problem = findProblem();
  write({ problem });
  if (problem) return;
  keep();
  const { prompt, reference, ...heard } = listHeard(({ share }) => share);
  const answer = { answer: forms.read(form), heard, seconds: spend() };
  send(byId("next"), `/listen/sessions/${session}/pages/${shown.number}`, answer, ({ pages, code }) => {
    removeEventListener("pagehide", keep);
    memory(`page ${shown.number}`, null);
    const query = new URLSearchParams(location.search);
    query.delete("page");
    if (!code && shown.number + 1 < pages) query.set("page", shown.number + 1);
    location.search = query;
  });
});
on("finish", "click", ({ target }) => send(target, `/listen/sessions/${session}/finish`, {}));
on("copy", "click", async () => {
  await navigator.clipboard.writeText(byId("code").textContent);
  write({ copied: texts.copied });
});
onKey((key, place) => {
  const letter = key === "r" && deck.tracks.has("reference") ? "reference" : key.toUpperCase();
  // A recording that plays goes on.
  if (!deck.tracks.has(letter)) return deck.press(key, place);
  if (!deck.tracks.get(letter).playing) deck.play(letter);
  return true;
});
if (shown) open();
if (back) goBack();
if (byId("copy")) byId("copy").hidden = !navigator.clipboard;
