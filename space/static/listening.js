// A page of a listening test. The server stores an answer on disk before it shows the next page; until then, this tab
// keeps the answer, so a reload loses nothing.
import * as forms from "./listening_forms.js";
import { byId, fill, keepField, onKey, remember, write } from "./page.js";
import { Deck } from "./player.js";
import { insist, post } from "./server.js";

const { test, session, shown, back, texts, invitation, onward } = JSON.parse(byId("listening-data").textContent);
const begun = performance.now();
const form = byId("answers");
const memory = (what, value) => remember("sessionStorage", `podeval-listening ${session} ${what}`, value);
const draft = shown && memory(`page ${shown.number}`);
const deck = new Deck(texts, { together: Boolean(byId("repeat")), step: 2, changed: keep });
const on = (id, kind, act) => byId(id)?.addEventListener(kind, act);

/** Send until the server answers with the listener's progress, then act on the answer; disable the button meanwhile. */
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

/** Return the seconds spent on this page, including those before a reload. */
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
  if (box) keepField(box, "podeval.repeat", (loop) => deck.tracks.forEach(({ sound }) => { sound.loop = loop; }));
  forms.begin(form, texts, draft?.answer ?? shown.saved?.answer);
  addEventListener("pagehide", keep);
}

on("agree", "submit", (event) => {
  event.preventDefault();
  send(event.submitter, `/listen/${test}/sessions`, { ...invitation, consent: byId("agreed").checked });
});
on("answers", "input", () => { write({ problem: "" }); keep(); });
on("next", "click", (event) => {
  // Each sound must be heard as far as the test requires, or at least begun.
  const unheard = [...deck.tracks.values()].filter(({ key, share }) =>
    key !== "prompt" && (key === "reference" || !shown.heard ? share <= 0 : share < shown.heard));
  if (!unheard.length) return;
  event.preventDefault();
  const values = { what: unheard.map(({ root }) => root.ariaLabel).join(", "), share: Math.round(100 * shown.heard) };
  write({ problem: fill(values.share ? texts.unheard_share : texts.unheard, values) });
  unheard[0].button.focus();
});
on("answers", "submit", (event) => {
  event.preventDefault();
  keep();
  const { prompt, reference, ...heard } = listHeard(({ share }) => share);
  const answer = { answer: forms.read(form), heard, seconds: spend() };
  send(byId("next"), `/listen/sessions/${session}/pages/${shown.number}`, answer, () => {
    removeEventListener("pagehide", keep);
    memory(`page ${shown.number}`, null);
    location.assign(onward);
  });
});
on("finish", "click", ({ target }) => send(target, `/listen/sessions/${session}/finish`, {}));
onKey((key, place) => {
  const letter = key === "r" && deck.tracks.has("reference") ? "reference" : key.toUpperCase();
  // A recording that is already playing continues.
  if (!deck.tracks.has(letter)) return deck.press(key, place);
  if (!deck.tracks.get(letter).playing) deck.play(letter);
  return true;
});
if (shown) open();
// Return listeners to their panel once, automatically after some seconds; the link for staying reloads this page.
if (back && !memory("returned")) {
  memory("returned", true);
  write({ countdown: fill(texts.returning, back) });
  byId("stay").hidden = false;
  setTimeout(() => byId("go").click(), 1000 * back.seconds);
}
