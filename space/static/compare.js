// One recording, or two at the same place of which one is heard, and the words that follow it.
import { byId, clock, fill, onKey, write } from "./page.js";
import { Deck } from "./player.js";

const { texts, sides } = JSON.parse(byId("compare-data").textContent);
const root = byId("deck");

const deck = new Deck(texts, {
  together: true,
  started({ key }) {
    root.dataset.heard = key;
    write({ said: sides.length > 1 ? fill(texts.hearing, { side: key.toUpperCase(), title: find(key).title }) : "" });
  },
  changed(track) {
    follow(find(track.key), track.sound.currentTime);
  },
  ended(track) {
    const over = fill(texts.over, { side: track.key.toUpperCase(), time: clock(track.length) });
    write({ said: sides.length > 1 ? over : "" });
    // The other one goes on from there, once it is asked to.
    for (const other of deck.tracks.values()) if (other.sound.currentTime < track.length) other.seek(track.length);
  },
});

const find = (key) => sides.find((side) => side.name === key);

/** Mark the line that is said at a moment, or was last; a long transcript shows the lines around it. */
function follow({ turns, lines }, seconds) {
  const said = turns.findLastIndex(({ start }) => start !== null && start <= seconds + 0.05);
  lines.forEach((line, number) => { line.ariaCurrent = number === said ? "true" : null; });
}

for (const side of sides) {
  const card = root.querySelector(`.side-${side.name}`);
  side.lines = [...card.querySelectorAll(".turn")];
  if (!side.audio) continue;
  const track = deck.add(side.name, card);
  track.take(side.audio, side.peaks);
  for (const button of card.querySelectorAll(".seek")) {
    const start = Number(button.dataset.start);
    button.addEventListener("click", () => { deck.seek(track, start); deck.play(side.name); });
  }
}
onKey((key, place) => {
  const track = deck.tracks.get(root.dataset.heard);
  const next = key === "x" ? [...deck.tracks.keys()].find((each) => each !== track.key) : key;
  if (deck.tracks.has(next)) deck.play(next);
  else return deck.press(key, place);
  return true;
});
root.classList.add("scripted");
root.dataset.state = "ready";
write({ said: texts.ready });
