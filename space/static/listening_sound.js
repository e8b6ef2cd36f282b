// The recordings of one page: one plays at a time, a change of recording may keep the position, what was heard is known.
import { clock, fill } from "/own/player.js";

const STEP = 2;

/** Stretches in order, those that touch as one. */
function merged(stretches) {
  const found = [];
  for (const [begin, end] of stretches.filter(([b, e]) => e > b).sort((one, two) => one[0] - two[0])) {
    const last = found.at(-1);
    if (last && begin <= last[1] + 0.02) last[1] = Math.max(last[1], end);
    else found.push([begin, end]);
  }
  return found;
}

class Track {
  constructor(deck, key, root, address, seconds, before) {
    Object.assign(this, { deck, key, root, address, stated: seconds, before: before.stretches ?? [], floor: before.share ?? 0 });
    this.peaks = [];
    this.sound = new Audio();
    this.sound.preload = "auto";
    this.sound.src = address.audio;
    this.button = root.querySelector(".play");
    this.canvas = root.querySelector(".wave");
    this.button.addEventListener("click", () => deck.toggle(key));
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    this.canvas.addEventListener("keydown", (event) => this.keyed(event));
    for (const name of ["timeupdate", "durationchange", "seeked", "play", "pause", "ended"]) {
      this.sound.addEventListener(name, () => this.show());
    }
    for (const name of ["timeupdate", "pause", "ended"]) this.sound.addEventListener(name, () => deck.changed());
    this.sound.addEventListener("playing", () => { this.complain(false); this.animate(); });
    this.sound.addEventListener("error", () => this.complain(true));
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.canvas);
    this.show();
    this.picture();
  }

  async picture() {
    try {
      const answer = await fetch(this.address.peaks, { credentials: "same-origin" });
      this.peaks = answer.ok ? (await answer.json()).peaks : [];
    } catch {
      this.peaks = [];
    }
    this.draw();
  }

  get length() {
    return Number.isFinite(this.sound.duration) ? this.sound.duration : this.stated ?? 0;
  }

  get playing() {
    return !this.sound.paused && !this.sound.ended;
  }

  heard() {
    const played = this.sound.played;
    const now = Array.from({ length: played.length }, (_, place) => [played.start(place), played.end(place)]);
    const length = this.length;
    if (!length) return merged(this.before);
    return merged([...this.before, ...now].map(([begin, end]) => [begin, end > length - 0.1 ? length : end]));
  }

  get share() {
    const played = this.length ? this.heard().reduce((sum, [begin, end]) => sum + end - begin, 0) / this.length : 0;
    return Math.min(1, Math.max(this.floor, played));
  }

  async play(at) {
    if (this.sound.error) {
      this.before = this.heard();
      this.sound.load();
    }
    if (at !== undefined) this.sound.currentTime = at < this.length - 0.25 ? at : 0;
    else if (this.sound.ended) this.sound.currentTime = 0;
    try {
      await this.sound.play();
    } catch (error) {
      if (error.name === "NotSupportedError") this.complain(true);
    }
  }

  seek(seconds) {
    // Chromium waits for ever after a seek to less before the end of FLAC.
    this.sound.currentTime = Math.min(Math.max(0, seconds), Math.max(0, this.length - 0.25));
    this.show();
  }

  drag(event) {
    const to = (moved) => {
      const box = this.canvas.getBoundingClientRect();
      this.seek(((moved.clientX - box.left) / box.width) * this.length);
    };
    this.canvas.setPointerCapture(event.pointerId);
    to(event);
    this.canvas.onpointermove = to;
    this.canvas.onpointerup = this.canvas.onpointercancel = () => { this.canvas.onpointermove = null; };
  }

  keyed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = this.sound.currentTime;
    const to = {
      ArrowLeft: at - STEP, ArrowDown: at - STEP, ArrowRight: at + STEP, ArrowUp: at + STEP,
      PageUp: at + 3 * STEP, PageDown: at - 3 * STEP, Home: 0, End: this.length,
    }[event.key];
    if (to === undefined) return;
    this.seek(to);
    event.preventDefault();
  }

  complain(broken) {
    const place = this.root.querySelector(".broken");
    place.hidden = !broken;
    place.textContent = broken ? this.deck.texts.audio : "";
  }

  animate() {
    this.draw();
    if (this.playing) requestAnimationFrame(() => this.animate());
  }

  show() {
    const at = this.sound.currentTime;
    this.root.classList.toggle("playing", this.playing);
    this.button.querySelector(".verb").textContent = this.playing ? this.deck.texts.pause : this.deck.texts.play;
    const time = `${clock(at)} / ${clock(this.length)}`;
    const heard = fill(this.deck.texts.heard, { share: Math.floor(100 * this.share + 1e-6) });
    this.root.querySelector(".time").textContent = `${time} · ${heard}`;
    this.canvas.setAttribute("aria-valuemax", this.length.toFixed(1));
    this.canvas.setAttribute("aria-valuenow", Math.min(at, this.length).toFixed(1));
    this.canvas.setAttribute("aria-valuetext", time);
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const dots = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * dots)) this.canvas.width = Math.round(width * dots);
    if (this.canvas.height !== Math.round(height * dots)) this.canvas.height = Math.round(height * dots);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.root);
    const [own, quiet, text] = ["--accent", "--quiet", "--text"].map((name) => style.getPropertyValue(name).trim());
    const heard = this.heard();
    const most = Math.max(0.05, ...this.peaks);
    const bars = Math.floor(width / 3);
    for (let bar = 0; bar < bars; bar++) {
      const first = Math.floor((bar * this.peaks.length) / bars);
      const last = Math.max(first + 1, Math.floor(((bar + 1) * this.peaks.length) / bars));
      const peak = this.peaks.length ? Math.max(...this.peaks.slice(first, last)) / most : 0;
      const tall = Math.max(2, peak * (height - 4));
      const second = ((bar + 0.5) / bars) * this.length;
      const was = heard.some(([begin, end]) => begin <= second && second <= end);
      pen.fillStyle = was ? own : quiet;
      pen.fillRect(bar * 3, (height - tall) / 2, 2, tall);
    }
    pen.fillStyle = text;
    pen.fillRect(Math.min(width - 2, (this.sound.currentTime / (this.length || 1)) * width), 0, 2, height);
  }

  leave() {
    this.watch.disconnect();
    this.sound.pause();
    this.sound.removeAttribute("src");
    this.sound.load();
  }
}

export class Deck {
  /**
   * @param {object} texts of the page
   * @param {boolean} together whether a change of recording keeps the position
   * @param {() => void} changed called when something more was heard
   */
  constructor(texts, together, changed) {
    Object.assign(this, { texts, together, changed });
    this.tracks = new Map();
    this.current = null;
  }

  add(key, root, address, seconds, before = {}) {
    this.tracks.set(key, new Track(this, key, root, address, seconds, before));
  }

  get playing() {
    return this.current !== null && this.tracks.get(this.current).playing;
  }

  play(key) {
    const next = this.tracks.get(key);
    if (!next) return;
    const last = this.current === null ? null : this.tracks.get(this.current);
    let at;
    if (last && last !== next) {
      if (this.together && (last.playing || last.sound.currentTime > 0) && !last.sound.ended) at = last.sound.currentTime;
      last.sound.pause();
      last.root.classList.remove("current");
    }
    this.current = key;
    next.root.classList.add("current");
    next.play(at);
  }

  toggle(key) {
    const track = this.tracks.get(key);
    if (track?.playing) track.sound.pause();
    else this.play(key);
  }

  /** Play or pause what was played last; the first one where nothing was. */
  again() {
    this.toggle(this.current ?? this.tracks.keys().next().value);
  }

  /** Whether a recording begins anew at its end. */
  repeat(wanted) {
    for (const track of this.tracks.values()) track.sound.loop = wanted;
  }

  share(key) {
    return this.tracks.get(key)?.share ?? 0;
  }

  /** What was heard, to be kept over a reload. */
  heard() {
    return Object.fromEntries([...this.tracks].map(([key, track]) => [key, { stretches: track.heard(), share: track.share }]));
  }

  leave() {
    for (const track of this.tracks.values()) track.leave();
    this.tracks.clear();
    this.current = null;
  }
}
