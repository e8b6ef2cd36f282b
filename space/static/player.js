// Recordings on a page, each with its sound, its picture, and its heard parts. One plays at a time.
import { clock, fill } from "./page.js";

const END = 0.25; // s: Chromium hangs after a seek to less than this before the end of a FLAC file

/** Sort stretches, and join those that touch. */
function merge(stretches) {
  const merged = [];
  for (const [begin, end] of stretches.filter(([b, e]) => e > b).sort(([one], [other]) => one - other)) {
    const last = merged.at(-1);
    if (last && begin <= last[1] + 0.02) last[1] = Math.max(last[1], end);
    else merged.push([begin, end]);
  }
  return merged;
}

class Player {
  /** Use an element written by the macro `player` of sounds.html; the deck coordinates the players. */
  constructor(deck, key, root) {
    const part = (selector) => root.querySelector(selector);
    Object.assign(this, { deck, key, root, sound: part("audio") ?? new Audio(), button: part(".play") });
    Object.assign(this, { wave: part(".wave"), bar: part(".at"), broken: part(".broken"), meter: part("progress") });
    this.sound.preload = "auto";
    this.button.addEventListener("click", () => deck.toggle(key));
    this.bar.addEventListener("input", () => deck.seek(this, Number(this.bar.value)));
    const on = (names, act) => names.split(" ").forEach((name) => this.sound.addEventListener(name, act));
    on("playing", () => { this.since ??= performance.now(); deck.stop(deck.current); });
    on("pause waiting ended seeking", () => Object.assign(this, { secondsBefore: this.seconds, since: null }));
    on("timeupdate durationchange seeked play playing pause ended emptied error", () => this.show());
    on("timeupdate pause ended", () => deck.changed(this));
    on("ended", () => deck.ended(this));
    this.wait();
  }

  /** Show that a sound is still loading; a flat line would look like silence. */
  wait() {
    this.sound.pause();
    this.sound.removeAttribute("src");
    this.sound.load();
    Object.assign(this, { before: [], floor: 0, secondsBefore: 0, since: null, stated: 0, audio: "" });
    this.button.disabled = true;
    this.wave.ariaBusy = "true";
  }

  /**
   * Load a sound: its address, the address of its picture, its length if known, and what was heard of the sound
   * earlier: stretches, a share without known positions, and the seconds for which it played.
   */
  async take(audio, peaks, length, { stretches = [], share = 0, seconds = 0 } = {}) {
    this.wait();
    const before = { before: merge(stretches), floor: share, secondsBefore: seconds };
    Object.assign(this, before, { stated: length || 0, audio });
    this.sound.src = audio;
    this.button.disabled = false;
    this.show();
    // A sound can be played even without its picture.
    await Object.assign(new Image(), { src: peaks }).decode().catch(() => {});
    if (this.audio !== audio) return;
    this.wave.style.setProperty("--bars", `url("${peaks}")`);
    this.wave.ariaBusy = "false";
  }

  get playing() {
    return !this.sound.paused && !this.sound.ended;
  }

  get length() {
    return this.stated || (Number.isFinite(this.sound.duration) ? this.sound.duration : 0);
  }

  /** The seconds for which it has played. */
  get seconds() {
    return this.secondsBefore + (this.since === null ? 0 : (performance.now() - this.since) / 1000);
  }

  /** The stretches that were played. */
  get stretches() {
    const { length, sound: { played } } = this;
    const now = Array.from({ length: played.length }, (_, place) => [played.start(place), played.end(place)]);
    return merge([...this.before, ...now].map(([begin, end]) => [begin, end > length - 0.1 ? length : end]));
  }

  /** The number of its seconds that were played at least once. */
  get heardSeconds() {
    return this.stretches.reduce((sum, [begin, end]) => sum + end - begin, 0);
  }

  get share() {
    return Math.min(1, Math.max(this.floor, this.length ? this.heardSeconds / this.length : 0));
  }

  /** Play from the current position or a given one; at the end, play from the beginning. */
  play(at = this.sound.ended ? 0 : undefined) {
    if (!this.audio) return;
    if (this.sound.error) {
      // Reload a sound that broke off at its position, keeping its heard parts.
      at ??= this.sound.currentTime;
      this.before = this.stretches;
      this.sound.load();
    }
    if (at !== undefined) this.sound.currentTime = at < this.length - END ? at : 0;
    // An earlier pause is not an error; neither is a browser that requires a key press for each sound.
    this.sound.play().catch(() => {});
  }

  seek(seconds) {
    if (this.audio) this.sound.currentTime = Math.min(Math.max(0, seconds), Math.max(0, this.length - END));
    this.show();
  }

  show() {
    const { length, needed, stretches, heardSeconds, deck: { texts } } = this;
    const at = this.sound.currentTime;
    const time = `${clock(at)} / ${clock(length)}`;
    this.broken.hidden = !this.audio || !this.sound.error;
    this.root.classList.toggle("playing", this.playing);
    this.button.querySelector(".verb").textContent = this.playing ? texts.pause : texts.play;
    this.root.querySelector(".time").textContent = time;
    Object.assign(this.bar, { max: length, value: at, ariaValueText: time });
    // The heard parts have the colour of their side.
    const percent = (second) => `${(100 * second) / (length || 1)}%`;
    const heard = stretches.map(([from, to]) => `var(--quiet) 0 ${percent(from)}, var(--own) 0 ${percent(to)}`);
    this.wave.style.setProperty("--heard", [...heard, "var(--quiet) 0 100%"].join(", "));
    const share = Math.floor(100 * this.share + 1e-6);
    const seconds = Math.floor(heardSeconds + 0.05);
    const place = this.root.querySelector(".share");
    if (place) place.textContent = needed ? fill(texts.heard_of, { seconds }) : fill(texts.heard, { share });
    if (this.meter) this.meter.value = needed ? Math.min(100, (100 * heardSeconds) / needed) : share;
  }
}

/** The recordings of one page; only one plays at a time. */
export class Deck {
  tracks = new Map();
  current = null;
  together = false; // whether all recordings are kept at the same position
  step = 5; // seconds that an arrow key moves
  started() {} // these are called with a player, `changed` whenever more of it was heard
  ended() {}
  changed() {}

  constructor(texts, options) {
    Object.assign(this, options, { texts });
  }

  add(key, root) {
    const track = new Player(this, key, root);
    this.tracks.set(key, track);
    return track;
  }

  play(key) {
    const next = this.tracks.get(key);
    const last = this.current ?? next;
    const { currentTime, ended } = last.sound;
    const keeps = this.together && last !== next && currentTime > 0 && !ended;
    this.current = next;
    for (const { root } of this.tracks.values()) root.classList.toggle("current", root === next.root);
    this.started(next);
    return next.play(keeps ? currentTime : undefined);
  }

  /** Pause all, or all except the one that is already playing, so there is no gap between two. */
  stop(sounding) {
    for (const track of this.tracks.values()) if (track !== sounding) track.sound.pause();
  }

  toggle(key) {
    if (this.tracks.get(key).playing) this.stop();
    else this.play(key);
  }

  seek(track, seconds) {
    for (const each of this.together ? this.tracks.values() : [track]) each.seek(seconds);
  }

  /** Handle a key: the space bar plays and pauses, arrows move, and a recording's letter plays that recording. */
  press(key, place) {
    const first = this.current ?? this.tracks.values().next().value;
    const track = this.tracks.get(place.closest("[data-key]")?.dataset.key) ?? first;
    const by = { arrowleft: -this.step, arrowright: this.step }[key];
    if (!first || (by && place.closest("input:not(.at)"))) return false;
    if (key === " ") this.toggle(first.key);
    else if (by) this.seek(track, track.sound.currentTime + by);
    else return false;
    return true;
  }
}
