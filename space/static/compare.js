// One recording, or two at the same position, one of which is audible, with a transcript that follows the sound.
import { byId, fill, onKey, write } from "./page.js";
import { Deck } from "./player.js";

const { texts, sides } = JSON.parse(byId("compare-data").textContent);
const root = byId("deck");

const deck = new Deck(texts, {
  together: true,
  started({ key, root: card }) {
    root.dataset.heard = key;
    write({ said: sides.length > 1 ? fill(texts.hearing, { side: key.toUpperCase(), title: card.ariaLabel }) : "" });
  },
  // Mark the current or last spoken line; a long transcript shows the lines around it.
  changed({ root: card, sound }) {
    const turns = [...card.querySelectorAll(".turn")];
    const said = turns.findLastIndex(({ dataset }) => Number(dataset.start) <= sound.currentTime + 0.05);
    turns.forEach((turn, number) => { turn.ariaCurrent = number === said ? "true" : null; });
  },
  // If one recording ends, the other can continue from that position.
  ended({ length }) {
    for (const other of deck.tracks.values()) if (other.sound.currentTime < length) other.seek(length);
  },
});

for (const { name, audio, peaks } of sides) {
  if (audio) deck.add(name, root.querySelector(`.side-${name}`)).take(audio, peaks);
}
root.addEventListener("click", ({ target }) => {
  const track = target.closest(".seek") && deck.tracks.get(target.closest("[data-key]").dataset.key);
  if (!track) return;
  deck.seek(track, Number(target.closest(".turn").dataset.start));
  deck.play(track.key);
});
onKey((key, place) => {
  const next = key === "x" ? sides.find(({ name }) => name !== root.dataset.heard)?.name : key;
  if (!deck.tracks.has(next)) return deck.press(key, place);
  deck.play(next);
  return true;
});
root.dataset.state = "ready";
write({ said: texts.ready });
