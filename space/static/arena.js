// The arena: show a battle, play it, take one vote, then reveal the systems. This tab stores data that survives a reload.
import { byId, fill, keepField, make, onKey, remember, write } from "./page.js";
import { Deck } from "./player.js";
import { Refusal, get, insist, post } from "./server.js";

const SIDES = ["a", "b"];
const OVER = ["forged", "foreign", "replayed", "expired", "unknown"]; // refusals that end the battle
const AGAIN = ["not heard", "not fetched", "too soon", "no comment", "invalid"]; // refusals that the voter can resolve
const OPUS = new Audio().canPlayType('audio/ogg; codecs="opus"') ? "?form=opus" : "";

/** Start in the element of the component, with the content that the site offers this person. */
export async function start(element) {
  const root = element.querySelector(".podeval-part");
  const offer = await insist(() => get("/arena/offer"));
  const { texts } = offer;
  const votes = [...root.querySelectorAll(".vote")];
  // A browser without storage loses the heard parts at a reload, but no acknowledged vote.
  let kept = remember("sessionStorage", "podeval.arena") ?? {};
  let battle = null;
  let busy = false;

  const deck = new Deck(texts, {
    changed: () => { keep(); judgeable(); },
    ended: ({ key }) => { if (battle && !isHeard(other(key))) deck.play(other(key)); },
  });
  const [a, b] = SIDES.map((side) => deck.add(side, byId(`side-${side}`)));
  const other = (side) => (side === "a" ? "b" : "a");
  const isHeard = (side) => deck.tracks.get(side).heardSeconds + 1e-6 >= battle[side].needed;
  const isAllHeard = () => battle !== null && SIDES.every(isHeard);
  const hear = (track, audio, ...more) => track.take(`/audio/${audio}${OPUS}`, `/audio/${audio}/peaks`, ...more);
  const save = (changed) => remember("sessionStorage", "podeval.arena", Object.assign(kept, changed));

  function keep() {
    if (!battle || busy) return;
    const heard = ({ stretches, seconds }) => ({ stretches, seconds });
    save({ heard: { a: heard(a), b: heard(b) }, comment: byId("comment").value });
  }

  function show(state, reason = "", sentence = "") {
    write({ "arena-status": sentence });
    Object.assign(byId("arena").dataset, { state, reason });
    for (const part of root.querySelectorAll("[data-in]")) part.hidden = !part.dataset.in.split(" ").includes(state);
    if (state !== "battle") deck.stop();
  }

  /** Wait for an answer, and do nothing else in the meantime. */
  async function during(asking) {
    busy = true;
    judgeable();
    try {
      return await asking();
    } finally {
      busy = false;
    }
  }

  const sayRefusal = ({ reason, message }) => offer.refused[reason] ?? message;

  function begin() {
    if (offer.state !== "open") return stick(new Refusal(0, { reason: offer.state, sentence: offer.sentence }));
    if (kept.pending) return deliver(kept.pending);
    if (kept.done) return reveal(kept.done);
    if (!kept.token) return next();
    take(() => get(`/arena/battles/${encodeURIComponent(kept.token)}`));
  }

  function next() {
    if (busy) return;
    battle = null;
    kept = { wish: byId("wish").value };
    save();
    take(() => post("/arena/battles", JSON.parse(kept.wish || "{}")));
  }

  async function take(ask) {
    for (const track of [a, b]) {
      track.wait();
      name(track);
    }
    show("loading", "", texts.loading);
    try {
      open(await during(ask));
    } catch (error) {
      stick(error);
    }
  }

  function open(view) {
    battle = view;
    save({ token: view.token });
    const { question, language, judged_on, instructions } = view.asked;
    write({
      question, instructions, "judged-on": judged_on.join(" · "), "item-title": view.title,
      "comment-label": view.comment_required ? texts.comment_required : texts.comment,
      "arena-problem": "", rule: texts[`rule_${view.rule}`] ?? "",
      loudness: view.loudness === null ? texts.as_is : texts.loud,
    });
    byId("question").lang = language;
    byId("asked").lang = view.language;
    // On a phone, a long task would push the players out of sight, so only its summary is shown.
    byId("task").open = Boolean(instructions) && innerWidth >= 600;
    byId("turns").replaceChildren(...view.turns.map(showTurn));
    Object.assign(byId("comment"), { value: kept.comment ?? "", required: view.comment_required });
    deck.current = a;
    for (const track of [a, b]) {
      const { audio, seconds, needed } = view[track.key];
      track.needed = view.protocol === "excerpts" ? needed : 0;
      hear(track, audio, seconds, kept.heard?.[track.key]);
    }
    show("battle");
    judgeable();
  }

  function showTurn({ text, audio }, number) {
    const label = fill(texts.turn, { number: number + 1 });
    const sound = { controls: true, preload: "none", src: `/audio/${audio}`, "aria-label": label };
    return make("li", {}, text, audio && " ", audio && make("audio", sound));
  }

  function judgeable() {
    if (!battle) return;
    const ready = isAllHeard();
    const needed = SIDES.map((side) => Math.ceil(battle[side].needed - 1e-6));
    const values = { seconds: needed[0], a: needed[0], b: needed[1] };
    const hint = ready ? texts.ready : fill(needed[0] === needed[1] ? texts.need : texts.need_both, values);
    if (byId("hint").textContent !== hint) write({ hint });
    for (const button of votes) button.disabled = busy || !(ready || button.dataset.outcome === "skip");
  }

  function vote({ outcome, preference = "" }) {
    if (!battle || busy || (outcome !== "skip" && !isAllHeard())) return;
    if (outcome !== "skip" && !byId("comment").reportValidity()) return;
    const comment = byId("comment").value;
    deck.stop();
    keep();
    // `randomUUID` is missing on a page that is not served over HTTPS.
    const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
    const played = { played_a: a.stretches, played_b: b.stretches, seconds_a: a.seconds, seconds_b: b.seconds };
    save({ pending: { id, token: battle.token, outcome, preference, comment, ...played } });
    deliver(kept.pending);
  }

  /** Send a ballot until the server answers; sending the same ballot again does not create another vote. */
  async function deliver(ballot, again = battle !== null) {
    if (busy) return;
    show("sending", "", texts.sending);
    const say = (sentence) => { if (sentence !== "") show("sending", "offline", texts.offline); };
    try {
      const done = await during(() => insist(() => post("/arena/votes", ballot), say));
      battle = null;
      kept = { wish: kept.wish, done: { ...done, sent: ballot.outcome } };
      save();
      reveal(kept.done);
    } catch (error) {
      if (!again || error.reason !== "not fetched") return refuse(error);
      // The site lost its counts, for example in a crash, so fetch the sounds again without the browser's cache.
      const fetchAgain = async ({ sound }) => (await fetch(sound.src, { cache: "reload" })).arrayBuffer();
      await Promise.allSettled([a, b].map(fetchAgain));
      deliver(ballot, false);
    }
  }

  function refuse(refusal) {
    // Keep a vote in this tab while it may still be accepted: after signing in, or when the arena opens again.
    if (!["not signed in", "closed"].includes(refusal.reason)) save({ pending: null });
    if (!AGAIN.includes(refusal.reason)) return stick(refusal);
    if (!battle) return begin();
    show("battle");
    judgeable();
    write({ "arena-problem": sayRefusal(refusal) });
  }

  /** Explain why nothing can be judged now, and what to do about it. */
  function stick(error) {
    battle = null;
    const reason = error.reason || "offline";
    const over = OVER.includes(reason);
    const sentence = error.status ? sayRefusal(error) : error.message || texts.offline_plain;
    write({
      "ended-title": texts.ended[reason] ?? (over ? texts.over : texts.failed),
      "ended-text": reason === "nothing left" ? `${sentence} ${texts.other}` : sentence,
      "ended-next": over ? texts.next : texts.retry, "ended-sign-in": offer.sign_in,
    });
    const unknown = reason === "not signed in";
    Object.assign(byId("ended-next"), { hidden: offer.state !== "open" || unknown, onclick: over ? next : begin });
    byId("ended-sign-in").hidden = !unknown;
    if (over) save({ token: null });
    show("ended", reason);
    byId("choice").hidden = offer.state !== "open";
    byId("ended").focus();
  }

  async function reveal(done) {
    const outcome = texts[`outcome_${done.outcome}`];
    const recorded = done.outcome === done.sent ? "" : fill(texts.recorded_as, { outcome });
    write({ recorded, standing: "", mine: "", "own-board": "" });
    byId("cut").hidden = !done.comment_cut;
    show("revealed");
    byId("revealed").focus();
    scrollTo({ top: 0 });
    try {
      const revealed = await insist(() => get(`/arena/votes/${encodeURIComponent(done.vote)}/revealed`));
      if (kept.done !== done) return;
      for (const track of [a, b]) name(track, revealed[track.key]);
      write({ standing: revealed.standing, mine: revealed.mine });
      byId("own-board").append(...revealed.board.map((row) => make("li", {}, row)));
    } catch (error) {
      write({ standing: sayRefusal(error) });
    }
  }

  /** Name the system of a side, if it is known, and offer its recording, in full if an excerpt was played. */
  function name(track, system) {
    const [named, whole] = [".named", ".whole"].map((part) => track.root.querySelector(part));
    named.hidden = !system;
    whole.hidden = !system?.whole;
    if (!system) return;
    named.replaceChildren(
      make("a", { href: system.page || null }, system.title), " ", make("span", { class: "quiet" }, system.about));
    if (!track.audio) hear(track, system.audio);
    whole.onclick = () => {
      hear(track, system.whole);
      deck.play(track.key);
      whole.hidden = true;
    };
  }

  onKey((key, place, repeats) => {
    const { state } = byId("arena").dataset;
    if (!root.offsetParent || !["battle", "revealed"].includes(state) || place.closest("[type=checkbox]")) return false;
    const asked = state === "battle" && votes.find((button) => button.dataset.keys.split(" ").includes(key));
    const done = state === "revealed" && key === "n";
    if (!asked && !done) return deck.press(key, place);
    if (asked && !repeats) asked.click();
    if (done && !repeats) next();
    return true;
  });

  const wish = byId("wish");
  for (const { title, choices } of offer.offered) {
    const add = ([text, value]) => make("option", { value: JSON.stringify(value) }, `${title}: ${text}`);
    wish.append(make("optgroup", { label: title }, choices.map(add)));
  }
  wish.value = kept.wish ?? "";
  if (wish.selectedIndex < 0) wish.selectedIndex = 0;
  wish.addEventListener("change", () => { if (!kept.pending) next(); });
  keepField(byId("speed"), "podeval.speed", (speed) => {
    for (const { sound } of [a, b]) sound.defaultPlaybackRate = sound.playbackRate = Number(speed) || 1;
  });
  // The second click of a double click on a vote does not request the next pair.
  byId("next").addEventListener("click", ({ detail }) => { if (detail < 2) next(); });
  byId("comment").addEventListener("input", keep);
  for (const button of votes) button.addEventListener("click", () => vote(button.dataset));
  // Stop the answers while the user's turn plays.
  byId("asked").addEventListener("play", () => deck.stop(), true);
  // Stop playing when the reader leaves the tab.
  document.addEventListener("podeval:tab", () => deck.stop());
  begin();
}
