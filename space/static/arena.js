// The arena: a battle is shown, heard, judged once, and only then told. What must survive a reload is kept in this tab.

import { NoAnswer, Refusal, chance, get, pause, post, remember } from "./arena_wire.js";
import { fillIn, load } from "./fragment.js";
import { Player, fill } from "./player.js";

const KEPT = "podeval.arena";
const SHORTCUTS = "podeval.shortcuts";
const SPEED = "podeval.speed";
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;
const DOUBLE_CLICK = 500;

const OPUS = new Audio().canPlayType('audio/ogg; codecs="opus"') ? "?form=opus" : "";

/** Begin in the element of the component, with what the site says an arena is for this person. */
export async function start(element) {
  const place = await load(element.querySelector(".podeval-part"), "/arena");
  if (place.querySelector("#arena")) judge(place);
}

function judge(root) {
  const at = (id) => root.querySelector(`#${id}`);
  const said = JSON.parse(at("arena-data").textContent);
  const texts = said.texts;
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

  function keep() {
    if (!battle || busy) return;
    kept.heard = { a: players.a.heard(), b: players.b.heard() };
    kept.seconds = { a: players.a.seconds, b: players.b.seconds };
    kept.comment = at("comment").value;
    save();
  }

  function show(state, reason = "", sentence = "") {
    at("arena-status").textContent = sentence;
    at("arena").dataset.state = state;
    at("arena").dataset.reason = reason;
    for (const id of ["battle", "revealed", "ended"]) at(id).hidden = id !== state;
    at("arena-status").hidden = !["loading", "sending"].includes(state);
    if (state !== "battle") for (const player of Object.values(players)) player.stop();
  }

  function sentenceOf(refusal) {
    const sentence = said.refused[refusal.reason] ?? `${refusal.message}.`;
    return sentence.charAt(0).toUpperCase() + sentence.slice(1).replace(/([.。])\.$/, "$1");
  }

  function begin() {
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
    const comment = at("comment");
    comment.value = kept.comment ?? "";
    comment.required = view.comment_required;
    const label = at("comment-label");
    label.textContent = view.comment_required ? label.dataset.required : label.dataset.optional;
    fillIn(at("asked"), view.task);
    // On a phone a long task would push the players out of sight; its summary stays.
    if (innerWidth < 600) at("task").open = false;
    at("rule").textContent = texts[`rule_${view.rule}`] ?? "";
    at("loudness").textContent = view.loudness === null ? texts.as_is : fill(texts.loud, { level: view.loudness });
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

  function enough(player) {
    return player.heardSeconds + 1e-6 >= battle[player === players.a ? "a" : "b"].needed;
  }

  function heardEnough() {
    return battle !== null && enough(players.a) && enough(players.b);
  }

  function judgeable() {
    if (!battle) return;
    const open = heardEnough();
    const [a, b] = [battle.a.needed, battle.b.needed].map((seconds) => Math.ceil(seconds - 1e-6));
    const hint = open ? texts.ready : fill(a === b ? texts.need : texts.need_both, { seconds: a, a, b });
    if (at("hint").textContent !== hint) at("hint").textContent = hint;
    for (const button of root.querySelectorAll(".vote")) {
      button.disabled = busy || !(open || button.dataset.outcome === "skip");
    }
  }

  function hurry() {
    for (const player of Object.values(players)) player.rate(Number(at("speed").value));
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
    for (const player of Object.values(players)) player.stop();
    keep();
    kept.pending = {
      id: chance(),
      token: battle.token,
      outcome,
      preference,
      comment,
      played_a: players.a.heard(),
      played_b: players.b.heard(),
      seconds_a: players.a.seconds,
      seconds_b: players.b.seconds,
    };
    save();
    deliver(kept.pending);
  }

  /** Send a ballot until the server answers; the same ballot again is the same vote. */
  async function deliver(ballot) {
    if (busy) return;
    busy = true;
    judgeable();
    show("sending", "", texts.sending);
    for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      try {
        const done = await post("/arena/votes", ballot);
        busy = false;
        battle = null;
        kept = { wish: kept.wish, done: { ...done, sent: ballot.outcome } };
        save();
        return reveal(kept.done);
      } catch (error) {
        if (error instanceof Refusal && error.status !== 429) {
          busy = false;
          return refused(error);
        }
        show("sending", "offline", texts.offline);
        await pause(error instanceof Refusal ? 1000 * error.after + FIRST_WAIT : wait);
      }
    }
  }

  function refused(refusal) {
    const again = ["not heard", "too soon", "no comment", "invalid"].includes(refusal.reason);
    // A vote is kept in this tab while it may still be taken: after signing in, or when the arena opens again.
    if (!["not signed in", "closed"].includes(refusal.reason)) kept.pending = null;
    save();
    if (!again) return stuck(refusal);
    if (!battle) return begin();
    show("battle");
    judgeable();
    problem(sentenceOf(refusal));
  }

  /** Nothing can be judged now: why, and what to do about it. */
  function stuck(error) {
    battle = null;
    const reason = error instanceof Refusal ? error.reason : "offline";
    const titles = { "nothing left": texts.nothing, "nothing yet": texts.nothing_yet, closed: texts.closed, "not signed in": texts.stranger };
    const over = ["forged", "foreign", "replayed", "expired", "unknown"].includes(reason);
    const sentence = error instanceof Refusal ? sentenceOf(error) : error instanceof NoAnswer ? texts.offline_plain : String(error);
    at("ended-title").textContent = titles[reason] ?? (over ? texts.over : texts.failed);
    at("ended-text").textContent = reason === "nothing left" ? `${sentence} ${texts.other}` : sentence;
    const button = at("ended-next");
    button.hidden = reason === "not signed in";
    button.textContent = over ? texts.next : texts.retry;
    button.onclick = over ? next : begin;
    at("ended-sign-in").hidden = reason !== "not signed in";
    if (over) {
      kept.token = null;
      save();
    }
    show("ended", reason);
    at("ended").focus();
  }

  function reveal(done) {
    const sentence = done.outcome === done.sent ? texts.recorded : texts.recorded_as;
    at("recorded").textContent = fill(sentence, { number: done.number, outcome: texts[`outcome_${done.outcome}`] });
    at("cut").hidden = !done.comment_cut;
    at("told").replaceChildren();
    show("revealed");
    // The second half of a double click is no wish for the next pair.
    at("next").disabled = true;
    setTimeout(() => { at("next").disabled = false; }, DOUBLE_CLICK);
    at("revealed").focus();
    scrollTo({ top: 0 });
    load(at("told"), `/arena/votes/${encodeURIComponent(done.vote)}/revealed`);
  }

  function key(event) {
    if (!root.offsetParent || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    if (!at("shortcuts-on").checked) return;
    const place = event.target instanceof Element ? event.target : document.body;
    if (place.closest("input, textarea, select, audio")) return;
    const state = at("arena").dataset.state;
    const name = event.key.toLowerCase();
    if (state === "revealed" && name === "n" && !event.repeat) return next();
    if (state !== "battle") return;
    const asked = [...root.querySelectorAll(".vote")].find((button) => button.dataset.keys.split(" ").includes(name));
    if (name === " " && !place.closest("button, a, summary")) {
      const started = players.a.playing || players.b.playing;
      const goal = !started && current === players.a && enough(players.a) && players.b.share === 0;
      (goal ? players.b : current).toggle();
    } else if (name === "arrowleft" || name === "arrowright") current.seek(current.sound.currentTime + (name === "arrowleft" ? -1 : 1) * current.step);
    else if (asked && !event.repeat) asked.click();
    else return;
    event.preventDefault();
  }

  const wish = at("wish");
  wish.value = kept.wish ?? "";
  if (wish.selectedIndex < 0) wish.selectedIndex = 0;
  wish.addEventListener("change", () => { if (!kept.pending) next(); });
  at("speed").addEventListener("change", () => { hurry(); remember("localStorage", SPEED, at("speed").value); });
  at("choice").addEventListener("submit", (event) => event.preventDefault());
  at("next").addEventListener("click", next);
  at("comment").addEventListener("input", keep);
  for (const button of root.querySelectorAll(".vote")) {
    button.addEventListener("click", () => vote(button.dataset.outcome, button.dataset.preference));
  }
  // What was asked is not heard over an answer to it.
  at("asked").addEventListener("play", () => Object.values(players).forEach((player) => player.stop()), true);
  addEventListener("keydown", key);
  addEventListener("pagehide", keep);
  // Back from another page: what this page remembers may be over.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  // What plays in a tab that is left stops.
  document.addEventListener("podeval:tab", () => Object.values(players).forEach((player) => player.stop()));
  at("shortcuts-on").checked = remember("localStorage", SHORTCUTS) ?? true;
  at("shortcuts-on").addEventListener("change", () => remember("localStorage", SHORTCUTS, at("shortcuts-on").checked));
  at("speed").value = remember("localStorage", SPEED) ?? "1";
  if (at("speed").selectedIndex < 0) at("speed").value = "1";
  begin();
}
