// The arena: a battle is shown, heard, judged once, and only then told. What must survive a reload is kept in this tab.
import { NoAnswer, Refusal, chance, get, insist, post, remember } from "./arena_wire.js";
import { Player, fill } from "./player.js";

const KEPT = "podeval.arena";
const SHORTCUTS = "podeval.shortcuts";
const SPEED = "podeval.speed";
const DOUBLE_CLICK = 500;
const OVER = ["forged", "foreign", "replayed", "expired", "unknown"]; // refusals after which the pair is no longer judged
const AGAIN = ["not heard", "not fetched", "too soon", "no comment", "invalid"]; // those that its voter can mend

const OPUS = new Audio().canPlayType('audio/ogg; codecs="opus"') ? "?form=opus" : "";

/** Begin in the element of the component, by what the site offers this person. */
export async function start(element) {
  const root = element.querySelector(".podeval-part");
  const at = (id) => root.querySelector(`#${id}`);
  const offer = await insist(() => get("/arena/offer"), () => {});
  const { texts } = offer;
  const votes = [...root.querySelectorAll(".vote")];
  // A browser that keeps nothing loses what was heard at a reload, no vote that was acknowledged.
  let kept = remember("sessionStorage", KEPT) ?? {};
  let battle = null;
  let busy = false;
  let current = null;

  const options = {
    texts,
    color: "--side",
    started(player) {
      for (const other of Object.values(players)) if (other !== player) other.stop();
      current = player;
      for (const one of Object.values(players)) one.root.classList.toggle("current", one === player);
    },
    changed() {
      keep();
      judgeable();
    },
    ended(player) {
      const other = player === players.a ? players.b : players.a;
      if (battle && !enough(other)) other.play();
    },
  };
  const players = { a: new Player(at("side-a"), options), b: new Player(at("side-b"), options) };

  const save = () => remember("sessionStorage", KEPT, kept);
  const stop = () => Object.values(players).forEach((player) => player.stop());
  const hurry = () => Object.values(players).forEach((player) => player.rate(Number(at("speed").value)));

  function keep() {
    if (!battle || busy) return;
    kept.heard = { a: players.a.heard(), b: players.b.heard() };
    kept.seconds = { a: players.a.seconds, b: players.b.seconds };
    kept.comment = at("comment").value;
    save();
  }

  function show(state, reason = "", sentence = "") {
    at("arena-status").textContent = sentence;
    Object.assign(at("arena").dataset, { state, reason });
    for (const part of root.querySelectorAll("[data-in]")) part.hidden = !part.dataset.in.split(" ").includes(state);
    if (state !== "battle") stop();
  }

  function sentenceOf(refusal) {
    const sentence = offer.refused[refusal.reason] ?? `${refusal.message}.`;
    return sentence.charAt(0).toUpperCase() + sentence.slice(1).replace(/([.。])\.$/, "$1");
  }

  function begin() {
    if (offer.state !== "open") return stuck(new Refusal(0, offer.state, offer.sentence));
    if (kept.pending) return deliver(kept.pending);
    if (kept.done) return reveal(kept.done);
    if (!kept.token) return next();
    take(() => get(`/arena/battles/${encodeURIComponent(kept.token)}`));
  }

  function next() {
    if (busy) return;
    battle = null;
    kept = { wish: at("wish").value };
    save();
    take(() => post("/arena/battles", JSON.parse(kept.wish || "{}")));
  }

  async function take(ask) {
    busy = true;
    for (const side of ["a", "b"]) {
      players[side].wait();
      name(side);
    }
    show("loading", "", texts.loading);
    try {
      const view = await ask();
      busy = false;
      kept.token = view.token;
      save();
      open(view);
    } catch (error) {
      busy = false;
      stuck(error);
    }
  }

  function open(view) {
    battle = view;
    const { question, language, judged_on, instructions } = view.asked;
    Object.assign(at("question"), { textContent: question, lang: language });
    at("judged-on").textContent = judged_on.join(" · ");
    // On a phone a long task would push the players out of sight; its summary stays.
    Object.assign(at("task"), { open: Boolean(instructions) && innerWidth >= 600 });
    Object.assign(at("asked"), { lang: view.language });
    at("item-title").textContent = view.title;
    at("instructions").textContent = instructions;
    at("turns").replaceChildren(...view.turns.map(showTurn));
    at("rule").textContent = texts[`rule_${view.rule}`] ?? "";
    at("loudness").textContent = view.loudness === null ? texts.as_is : texts.loud;
    const { required, optional } = at("comment-label").dataset;
    at("comment-label").textContent = view.comment_required ? required : optional;
    Object.assign(at("comment"), { value: kept.comment ?? "", required: view.comment_required });
    problem("");
    current = players.a;
    for (const side of ["a", "b"]) {
      const { audio, seconds, needed } = view[side];
      players[side].needed = view.protocol === "excerpts" ? needed : 0;
      players[side].take(`/audio/${audio}${OPUS}`, `/audio/${audio}/peaks`, seconds, kept.heard?.[side], 0, kept.seconds?.[side]);
    }
    if (at("speed").value !== "1") hurry();
    show("battle");
    judgeable();
  }

  function showTurn({ text, audio }, number) {
    const turn = document.createElement("li");
    turn.append(text);
    if (audio) {
      const sound = Object.assign(document.createElement("audio"), { controls: true, preload: "none", src: `/audio/${audio}` });
      sound.setAttribute("aria-label", fill(texts.turn, { number: number + 1 }));
      turn.append(" ", sound);
    }
    return turn;
  }

  function enough(player) {
    return player.heardSeconds + 1e-6 >= battle[player === players.a ? "a" : "b"].needed;
  }

  const heardEnough = () => battle !== null && enough(players.a) && enough(players.b);

  function judgeable() {
    if (!battle) return;
    const ready = heardEnough();
    const [a, b] = [battle.a.needed, battle.b.needed].map((seconds) => Math.ceil(seconds - 1e-6));
    const hint = ready ? texts.ready : fill(a === b ? texts.need : texts.need_both, { seconds: a, a, b });
    if (at("hint").textContent !== hint) at("hint").textContent = hint;
    for (const button of votes) button.disabled = busy || !(ready || button.dataset.outcome === "skip");
  }

  function problem(sentence) {
    at("arena-problem").textContent = sentence;
    at("arena-problem").hidden = !sentence;
  }

  function vote(outcome, preference = "") {
    if (!battle || busy || (outcome !== "skip" && !heardEnough())) return;
    const comment = at("comment").value;
    if (battle.comment_required && outcome !== "skip" && !comment.trim()) {
      problem(at("comment-label").dataset.required);
      at("comment").focus();
      return;
    }
    stop();
    keep();
    const { a, b } = players;
    const played = { played_a: a.heard(), played_b: b.heard(), seconds_a: a.seconds, seconds_b: b.seconds };
    kept.pending = { id: chance(), token: battle.token, outcome, preference, comment, ...played };
    save();
    deliver(kept.pending);
  }

  /** Send a ballot until the server answers; the same ballot again is the same vote. */
  async function deliver(ballot, again = battle !== null) {
    if (busy) return;
    busy = true;
    judgeable();
    show("sending", "", texts.sending);
    try {
      const done = await insist(() => post("/arena/votes", ballot), (sentence) => { if (sentence !== "") show("sending", "offline", texts.offline); });
      busy = false;
      battle = null;
      kept = { wish: kept.wish, done: { ...done, sent: ballot.outcome } };
      save();
      reveal(kept.done);
    } catch (error) {
      busy = false;
      if (!again || error.reason !== "not fetched") return refused(error);
      // The site lost count, as where it ended at once: the sounds are fetched past the browser's cache.
      await Promise.allSettled(Object.values(players).map((player) => player.fetch()));
      deliver(ballot, false);
    }
  }

  function refused(refusal) {
    // A vote is kept in this tab while it may still be taken: after signing in, or when the arena opens again.
    if (!["not signed in", "closed"].includes(refusal.reason)) kept.pending = null;
    save();
    if (!AGAIN.includes(refusal.reason)) return stuck(refusal);
    if (!battle) return begin();
    show("battle");
    judgeable();
    problem(sentenceOf(refusal));
  }

  /** Nothing can be judged now: why, and what to do about it. */
  function stuck(error) {
    battle = null;
    const reason = error instanceof Refusal ? error.reason : "offline";
    const over = OVER.includes(reason);
    const known = error instanceof Refusal;
    const sentence = known ? (error.status ? sentenceOf(error) : error.message) : error instanceof NoAnswer ? texts.offline_plain : String(error);
    at("ended-title").textContent = texts.ended[reason] ?? (over ? texts.over : texts.failed);
    at("ended-text").textContent = reason === "nothing left" ? `${sentence} ${texts.other}` : sentence;
    const button = at("ended-next");
    Object.assign(button, { hidden: offer.state !== "open" || reason === "not signed in", onclick: over ? next : begin });
    button.textContent = over ? texts.next : texts.retry;
    Object.assign(at("ended-sign-in"), { hidden: reason !== "not signed in", textContent: offer.sign_in });
    if (over) {
      kept.token = null;
      save();
    }
    show("ended", reason);
    at("choice").hidden = offer.state !== "open";
    at("ended").focus();
  }

  async function reveal(done) {
    const said = done.outcome === done.sent ? "" : fill(texts.recorded_as, { outcome: texts[`outcome_${done.outcome}`] });
    at("recorded").textContent = said;
    at("cut").hidden = !done.comment_cut;
    for (const id of ["standing", "mine", "own-board"]) at(id).replaceChildren();
    show("revealed");
    // The second half of a double click is no wish for the next pair.
    at("next").disabled = true;
    setTimeout(() => { at("next").disabled = false; }, DOUBLE_CLICK);
    at("revealed").focus();
    scrollTo({ top: 0 });
    try {
      const told = await insist(() => get(`/arena/votes/${encodeURIComponent(done.vote)}/revealed`), () => {});
      if (kept.done !== done) return;
      for (const side of ["a", "b"]) name(side, told[side]);
      at("standing").textContent = told.standing;
      at("mine").textContent = told.mine;
      at("own-board").append(...told.board.map((row) => Object.assign(document.createElement("li"), { textContent: row })));
    } catch (error) {
      at("standing").textContent = sentenceOf(error);
    }
  }

  /** Say of a side whose recording it is, and let that be heard again, whole where it was an excerpt; nothing of it without. */
  function name(side, known) {
    const player = players[side];
    const [named, whole] = [player.root.querySelector(".named"), player.root.querySelector(".whole")];
    named.hidden = !known;
    whole.hidden = !known?.whole;
    if (!known) return;
    const link = named.querySelector("a");
    link.textContent = known.title;
    if (known.page) link.href = known.page;
    else link.removeAttribute("href");
    named.querySelector("span").textContent = known.about;
    const hear = (audio) => player.take(`/audio/${audio}${OPUS}`, `/audio/${audio}/peaks`, 0);
    if (!player.loaded) hear(known.audio);
    whole.onclick = () => {
      hear(known.whole);
      player.play();
      whole.hidden = true;
    };
  }

  function key(event) {
    if (!root.offsetParent || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    if (!at("shortcuts-on").checked) return;
    const place = event.target instanceof Element ? event.target : document.body;
    if (place.closest("input, textarea, select, audio")) return;
    const { state } = at("arena").dataset;
    const pressed = event.key.toLowerCase();
    if (!["battle", "revealed"].includes(state) || !current?.loaded) return;
    const asked = state === "battle" && votes.find((button) => button.dataset.keys.split(" ").includes(pressed));
    // What leads to this very page has the focus after it was followed, and nothing to do for the key.
    const presses = place.closest("button, a, summary") && !place.closest("[aria-selected=true], [aria-current]");
    if (pressed === " " && !presses) {
      const started = players.a.playing || players.b.playing;
      const goal = battle && !started && current === players.a && enough(players.a) && players.b.share === 0;
      (goal ? players.b : current).toggle();
    } else if (pressed === "arrowleft" || pressed === "arrowright") current.seek(current.sound.currentTime + (pressed === "arrowleft" ? -1 : 1) * current.step);
    else if (state === "revealed" && pressed === "n" && !event.repeat) next();
    else if (asked && !event.repeat) asked.click();
    else return;
    event.preventDefault();
  }

  const wish = at("wish");
  for (const { protocol, title, dimensions } of offer.offered) {
    const group = Object.assign(document.createElement("optgroup"), { label: title });
    const add = (text, value) => group.append(new Option(`${title}: ${text}`, JSON.stringify(value)));
    if (dimensions.length > 1) add(texts.chance, { protocol });
    for (const [dimension, text] of dimensions) add(text, { protocol, dimension });
    wish.append(group);
  }
  wish.value = kept.wish ?? "";
  if (wish.selectedIndex < 0) wish.selectedIndex = 0;
  wish.addEventListener("change", () => { if (!kept.pending) next(); });
  at("speed").value = remember("localStorage", SPEED) ?? "1";
  if (at("speed").selectedIndex < 0) at("speed").value = "1";
  at("speed").addEventListener("change", () => { hurry(); remember("localStorage", SPEED, at("speed").value); });
  at("shortcuts-on").checked = remember("localStorage", SHORTCUTS) ?? true;
  at("shortcuts-on").addEventListener("change", () => remember("localStorage", SHORTCUTS, at("shortcuts-on").checked));
  at("choice").addEventListener("submit", (event) => event.preventDefault());
  at("next").addEventListener("click", next);
  at("comment").addEventListener("input", keep);
  for (const button of votes) button.addEventListener("click", () => vote(button.dataset.outcome, button.dataset.preference));
  // What was asked is not heard over an answer to it.
  at("asked").addEventListener("play", stop, true);
  addEventListener("keydown", key);
  addEventListener("pagehide", keep);
  // Back from another page: what this page remembers may be over.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  // What plays in a tab that is left stops.
  document.addEventListener("podeval:tab", stop);
  begin();
}
