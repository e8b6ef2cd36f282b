// One recording, or two under one transport: both play, one is heard, the other is kept at the same place beside it.
import { Wave, clock, fill } from "/own/player.js";

const STEP = 5;
const LOOK = 100; // ms between two looks at how far apart they are
const CLOSE = 0.01; // s that need no correction
const FAR = 0.25; // s that are made up by a seek, not by a change of speed
const HEARD_FAR = 0.03; // s at a switch beyond which the one that comes in is set anew

const deck = document.getElementById("deck");
const data = JSON.parse(document.getElementById("compare-data").textContent);
const texts = data.texts;

/** One side: its sound, its picture, its words. */
class Side {
  constructor(told) {
    Object.assign(this, told);
    this.lane = deck.querySelector(`.lane[data-side="${this.name}"]`);
    this.words = deck.querySelector(`.transcript[data-side="${this.name}"]`);
    this.pick = deck.querySelector(`.pick[data-side="${this.name}"]`);
    this.lines = [...this.words.querySelectorAll(".turn")];
    this.sound = this.lane.querySelector("audio");
    this.shown = -1;
    if (!this.sound) return;
    this.sound.controls = false;
    this.wave = new Wave(this.lane.querySelector("canvas"), `--${this.name}`, (share) => seek(share * whole()), () => draw());
  }

  get there() { return Boolean(this.sound) && !this.sound.error; }
  get length() { return this.there && Number.isFinite(this.sound.duration) ? this.sound.duration : 0; }
  get running() { return this.there && !this.sound.paused && !this.sound.ended; }

  /** The turn that is said at a moment: the last that has begun, while it lasts. */
  turnAt(seconds) {
    let found = -1;
    this.turns.forEach((turn, place) => { if (turn.start !== null && turn.start <= seconds + 0.05) found = place; });
    const end = found < 0 ? null : this.turns[found].end;
    return end !== null && seconds > end + 0.5 ? -1 : found;
  }

  follow(seconds) {
    const place = this.turnAt(seconds);
    if (place === this.shown) return;
    this.lines[this.shown]?.removeAttribute("aria-current");
    this.shown = place;
    const line = this.lines[place];
    if (!line) return;
    line.setAttribute("aria-current", "true");
    // A long transcript shows the lines around this one; the page stays where the reader has it.
    const first = Math.min(Math.max(0, place - 2), Math.max(0, this.lines.length - 6));
    this.lines.forEach((one, number) => one.classList.toggle("near", number >= first && number < first + 6));
  }
}

const bar = deck.querySelector("#place");
const said = deck.querySelector("#said");
const sides = data.sides.map((told) => new Side(told));
let heard = sides.find((side) => side.name === data.heard);
let wanted = false; // whether it should be playing
let animating = false;
let over = null; // the side of which was said that it is over

const NOBODY = { there: false, running: false, length: 0 };
const other = () => sides.find((side) => side !== heard) ?? NOBODY;
const whole = () => Math.max(...sides.map((side) => side.length), 0);

/** Where the transport is: with the one heard, or, once that is over, with the one that goes on. */
function at() {
  if (!heard.there) return other().there ? other().sound.currentTime : 0;
  const here = heard.sound.currentTime;
  if (here >= heard.length - 0.05 && other().there && other().sound.currentTime > heard.length) return other().sound.currentTime;
  return here;
}

const silence = () => sides.forEach((side) => { if (side.sound) side.sound.muted = side !== heard; });

async function start(side, seconds) {
  if (!side.there || seconds >= side.length) return;
  if (Math.abs(side.sound.currentTime - seconds) > CLOSE) side.sound.currentTime = seconds;
  await side.sound.play().catch((error) => { if (error.name === "NotSupportedError") complain(side); });
}

function play() {
  const from = at() >= whole() - 0.05 ? 0 : at();
  wanted = true;
  silence();
  for (const side of sides) start(side, from);
  show();
}

function pause() {
  wanted = false;
  const here = at();
  for (const side of sides) if (side.there) Object.assign(side.sound, { playbackRate: 1 }).pause();
  if (other().there && here <= other().length) other().sound.currentTime = here;
  show();
}

function seek(seconds) {
  const to = Math.min(Math.max(0, seconds), Math.max(0, whole() - 0.05));
  for (const side of sides) {
    if (!side.there) continue;
    side.sound.currentTime = Math.min(to, side.length);
    if (wanted && !side.running && to < side.length) start(side, to);
  }
  over = null;
  show();
}

/** Hear the other one from the very place; both are running, so nothing has to begin. */
function hear(name) {
  const next = sides.find((side) => side.name === name);
  if (!next?.there || next === heard) return;
  const here = at();
  heard = next;
  heard.sound.playbackRate = 1;
  if (here < heard.length && Math.abs(heard.sound.currentTime - here) > HEARD_FAR) heard.sound.currentTime = here;
  if (wanted && !heard.running) start(heard, here);
  silence();
  if (!tell()) said.textContent = fill(texts.hearing, { side: heard.name.toUpperCase(), title: heard.title });
  show();
}

/** Say once that the one heard is over while the other goes on; whether it was said. */
function tell() {
  if (!wanted || !heard.there || at() < heard.length || at() >= whole() - 0.05 || over === heard) return false;
  over = heard;
  said.textContent = fill(texts.over, { side: heard.name.toUpperCase(), time: clock(heard.length) });
  return true;
}

/** Bring the silent one to the place of the one heard: by its speed where it is near, by a seek where it is not. */
function keep() {
  const silent = other();
  if (!silent.there || !silent.running || !heard.running || heard.sound.readyState < 3 || silent.sound.seeking) return;
  const apart = silent.sound.currentTime - heard.sound.currentTime;
  if (Math.abs(apart) > FAR) silent.sound.currentTime = Math.min(heard.sound.currentTime + 0.05, silent.length);
  const turned = Math.abs(apart) > CLOSE && Math.abs(apart) <= FAR;
  silent.sound.playbackRate = turned ? 1 - Math.max(-0.5, Math.min(0.5, apart * 3)) : 1;
}

function complain(side) {
  const place = side.lane.querySelector(".broken");
  place.hidden = false;
  place.textContent = texts.broken;
  if (side.pick) side.pick.disabled = true;
  if (side === heard && other().there) hear(other().name);
}

function show() {
  const here = at();
  const last = whole();
  const time = `${clock(here)} / ${clock(last)}`;
  deck.dataset.playing = String(wanted);
  deck.dataset.heard = heard.name;
  deck.querySelector("#play .verb").textContent = wanted ? texts.pause : texts.play;
  deck.querySelector("#time").textContent = time;
  bar.max = last.toFixed(1);
  bar.value = here.toFixed(1);
  bar.setAttribute("aria-valuetext", time);
  for (const side of sides) {
    side.pick?.setAttribute("aria-pressed", String(side === heard));
    for (const part of [side.lane, side.words]) part.classList.toggle("current", side === heard);
    side.follow(here);
  }
  tell();
  draw();
}

function draw() {
  sides.forEach((side) => side.wave?.draw(at(), side.length, whole(), side === heard ? [[0, side.length]] : []));
}

function animate() {
  if (animating) return;
  animating = true;
  const next = () => { show(); animating = wanted; if (wanted) requestAnimationFrame(next); };
  requestAnimationFrame(next);
}

const ended = () => { if (wanted && !sides.some((side) => side.running)) pause(); };

/** To the turn before or after, of the one heard. */
function turn(direction) {
  const here = at();
  const starts = heard.turns.map((one) => one.start).filter((start) => start !== null);
  const found = direction > 0 ? starts.find((start) => start > here + 0.1) : starts.findLast((start) => start < here - 1);
  if (found !== undefined) seek(found);
}

const KEYS = { a: () => hear("a"), b: () => hear("b"), x: () => hear(other().name), n: () => turn(1), p: () => turn(-1) };

function keyed(event) {
  const on = event.target;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (on !== bar && on.closest?.("input, select, textarea")) return;
  const arrows = { ArrowLeft: -STEP, ArrowDown: -STEP, ArrowRight: STEP, ArrowUp: STEP, PageUp: 6 * STEP, PageDown: -6 * STEP };
  const vertical = ["ArrowUp", "ArrowDown", "PageUp", "PageDown"].includes(event.key);
  if (event.key in arrows && (on === bar || !vertical)) seek(at() + arrows[event.key]);
  else if (event.key === "Home" && (on === bar || on === document.body)) seek(0);
  else if (event.key === "End" && on === bar) seek(whole());
  else if (event.key === " " && !on.closest?.("button, a, summary")) wanted ? pause() : play();
  else if (deck.querySelector("#keys").checked && KEYS[event.key.toLowerCase()]) KEYS[event.key.toLowerCase()]();
  else return;
  event.preventDefault();
}

function ready() {
  if (sides.some((side) => side.there && side.sound.readyState < 1)) return;
  deck.dataset.state = "ready";
  said.textContent = texts.ready;
  if (wanted) for (const side of sides) start(side, at());
  show();
}

deck.classList.add("scripted");
silence();
for (const side of sides) {
  side.pick?.addEventListener("click", () => hear(side.name));
  for (const button of side.words.querySelectorAll(".seek")) {
    const start = Number(button.dataset.start);
    button.textContent = clock(start);
    button.setAttribute("aria-label", fill(texts.from, { time: clock(start) }));
    button.addEventListener("click", () => { hear(side.name); seek(start); });
  }
  if (!side.sound) continue;
  side.wave.load(side.peaks);
  side.sound.addEventListener("loadedmetadata", ready);
  side.sound.addEventListener("error", () => { complain(side); ready(); });
  side.sound.addEventListener("ended", ended);
  side.sound.addEventListener("seeked", show);
  side.sound.addEventListener("playing", animate);
}
deck.querySelector("#play").addEventListener("click", () => (wanted ? pause() : play()));
bar.addEventListener("input", () => seek(Number(bar.value)));
document.addEventListener("keydown", keyed);
setInterval(keep, LOOK);
ready();
