// A recording on a page: its sound, its picture, and what of it was heard; of the arena, the comparison and listening tests.

export function clock(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
}

export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

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

/** The picture of a sound, in which one points at a place. */
export class Wave {
  /** What was heard is drawn in the style's property `color`; `seek` is called with the place pointed at, 0 to 1. */
  constructor(canvas, color, seek, redraw) {
    Object.assign(this, { canvas, color, redraw, peaks: null });
    canvas.addEventListener("pointerdown", (event) => {
      const to = (moved) => {
        const box = canvas.getBoundingClientRect();
        seek((moved.clientX - box.left) / box.width);
      };
      canvas.setPointerCapture(event.pointerId);
      to(event);
      canvas.onpointermove = to;
      canvas.onpointerup = canvas.onpointercancel = () => { canvas.onpointermove = null; };
    });
    this.watch = new ResizeObserver(redraw);
    this.watch.observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  /** Show that a picture is coming, which a flat line would deny. */
  wait(coming = true) {
    if (coming) Object.assign(this, { peaks: null, address: null });
    this.canvas.classList.toggle("skeleton", coming);
    this.canvas.setAttribute("aria-busy", String(coming));
    this.redraw();
  }

  async load(address) {
    this.wait();
    this.address = address;
    // Without its picture a sound can still be played.
    const answer = await fetch(address, { credentials: "same-origin" }).catch(() => null);
    const peaks = answer?.ok ? (await answer.json()).peaks : [];
    if (this.address !== address) return;
    this.peaks = peaks;
    this.wait(false);
  }

  /** Draw it `length` seconds long on a canvas of `whole` seconds; `heard` are the stretches in colour. */
  draw(at, length, whole, heard) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const dots = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * dots)) this.canvas.width = Math.round(width * dots);
    if (this.canvas.height !== Math.round(height * dots)) this.canvas.height = Math.round(height * dots);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.canvas);
    const [own, quiet, text] = [this.color, "--quiet", "--text"].map((name) => style.getPropertyValue(name).trim());
    const { peaks } = this;
    if (!peaks) return;
    const bars = Math.floor((width * (whole ? length / whole : 0)) / 3);
    const most = Math.max(0.05, ...peaks);
    for (let bar = 0; bar < bars; bar++) {
      const first = Math.floor((bar * peaks.length) / bars);
      const last = Math.max(first + 1, Math.floor(((bar + 1) * peaks.length) / bars));
      const peak = peaks.length ? Math.max(...peaks.slice(first, last)) / most : 0;
      const tall = Math.max(2, peak * (height - 6));
      const second = ((bar + 0.5) / bars) * length;
      const was = heard.some(([begin, end]) => begin <= second && second <= end);
      pen.fillStyle = was ? own : quiet;
      pen.globalAlpha = was ? 1 : 0.75;
      pen.fillRect(bar * 3, (height - tall) / 2, 2, tall);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = text;
    pen.fillRect(Math.min(width - 2, (whole ? at / whole : 0) * width), 0, 2, height);
  }
}

export class Player {
  /**
   * In an element with a button `.play` with a `.verb`, a canvas `.wave`, `.time`, `.broken`, and perhaps a `progress` and a
   * `.share`. Options: `texts`, `color`, `step` (seconds), and what is called: `toggle`, `started`, `changed`, `ended`.
   */
  constructor(root, options) {
    const nothing = () => {};
    Object.assign(this, { step: 5, started: nothing, changed: nothing, ended: nothing, color: "--accent" }, options, { root });
    this.button = root.querySelector(".play");
    this.canvas = root.querySelector(".wave");
    this.sound = new Audio();
    this.sound.preload = "auto";
    this.wave = new Wave(this.canvas, this.color, (share) => this.seek(share * this.length), () => this.draw());
    this.button.addEventListener("click", () => (options.toggle ?? ((player) => player.toggle()))(this));
    this.canvas.addEventListener("keydown", (event) => this.keyed(event));
    this.forget();
    this.listen();
  }

  forget() {
    Object.assign(this, { before: [], floor: 0, secondsBefore: 0, since: null, stated: 0, loaded: false });
  }

  /**
   * Take a sound: its address and that of its peaks, its length as far as it is known, and what was heard of it before:
   * stretches, a share of which nothing closer is known, and the seconds for which it played.
   */
  take(audio, peaks, length, heard = [], share = 0, seconds = 0) {
    this.wait();
    Object.assign(this, { before: merged(heard), floor: share, secondsBefore: seconds, stated: length ?? 0, loaded: true });
    this.sound.src = audio;
    this.button.disabled = false;
    this.show();
    this.wave.load(peaks);
  }

  /** Nothing to play yet, and it is coming. */
  wait() {
    this.stop();
    this.forget();
    this.sound.removeAttribute("src");
    this.button.disabled = true;
    this.complain(false);
    this.wave.wait();
  }

  listen() {
    const { sound } = this;
    sound.addEventListener("playing", () => {
      this.since ??= performance.now();
      this.complain(false);
      this.animate();
    });
    for (const name of ["pause", "waiting", "ended", "seeking"]) sound.addEventListener(name, () => this.rest());
    for (const name of ["timeupdate", "durationchange", "seeked", "play", "pause", "ended"]) sound.addEventListener(name, () => this.show());
    for (const name of ["timeupdate", "pause", "ended"]) sound.addEventListener(name, () => this.changed(this));
    sound.addEventListener("error", () => this.complain(this.loaded));
    sound.addEventListener("ended", () => this.ended(this));
  }

  rest() {
    if (this.since !== null) this.secondsBefore += (performance.now() - this.since) / 1000;
    this.since = null;
  }

  get playing() {
    return !this.sound.paused && !this.sound.ended;
  }

  get length() {
    return this.stated || (Number.isFinite(this.sound.duration) ? this.sound.duration : 0);
  }

  /** How long it was playing. */
  get seconds() {
    return this.secondsBefore + (this.since === null ? 0 : (performance.now() - this.since) / 1000);
  }

  /** Stretches that were played. */
  heard() {
    const { played } = this.sound;
    const now = Array.from({ length: played.length }, (_, place) => [played.start(place), played.end(place)]);
    const { length } = this;
    return merged([...this.before, ...now].map(([begin, end]) => [Math.max(0, begin), end > length - 0.1 ? length : end]));
  }

  /** Seconds of it that were played at least once. */
  get heardSeconds() {
    return this.heard().reduce((sum, [begin, end]) => sum + end - begin, 0);
  }

  get share() {
    return Math.min(1, Math.max(this.floor, this.length ? this.heardSeconds / this.length : 0));
  }

  /** Play it from where it is, or from a place; from the beginning where it had ended. */
  async play(at) {
    if (!this.loaded) return;
    if (this.sound.error) this.renew();
    if (at !== undefined) this.sound.currentTime = at < this.length - 0.25 ? at : 0;
    else if (this.sound.ended) this.sound.currentTime = 0;
    this.started(this);
    try {
      await this.sound.play();
    } catch (error) {
      // A pause that came first is no fault; neither is a browser that wants a key pressed for each sound.
      if (error.name === "NotSupportedError") this.complain(true);
    }
  }

  stop() {
    this.sound.pause();
  }

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  rate(times) {
    this.sound.defaultPlaybackRate = this.sound.playbackRate = times;
  }

  /** Load a sound again that broke off, at its place, without forgetting what was heard. */
  renew() {
    const at = this.sound.currentTime;
    this.before = this.heard();
    this.sound.load();
    this.sound.currentTime = at;
  }

  /** Fetch it once more, whole. */
  async fetch() {
    await (await fetch(this.sound.src, { cache: "reload", credentials: "same-origin" })).arrayBuffer();
  }

  seek(seconds) {
    // Chromium waits for ever after a seek to less before the end of FLAC.
    if (this.loaded) this.sound.currentTime = Math.min(Math.max(0, seconds), Math.max(0, this.length - 0.25));
    this.show();
  }

  keyed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = this.sound.currentTime;
    const to = {
      ArrowLeft: at - this.step, ArrowDown: at - this.step, ArrowRight: at + this.step, ArrowUp: at + this.step,
      PageUp: at + 3 * this.step, PageDown: at - 3 * this.step, Home: 0, End: this.length,
    }[event.key];
    if (to === undefined) return;
    this.seek(to);
    event.preventDefault();
    event.stopPropagation();
  }

  complain(broken) {
    const place = this.root.querySelector(".broken");
    place.hidden = !broken;
    place.textContent = broken ? this.texts.audio : "";
  }

  animate() {
    this.draw();
    if (this.playing) requestAnimationFrame(() => this.animate());
  }

  show() {
    const at = this.sound.currentTime;
    this.root.classList.toggle("playing", this.playing);
    this.button.querySelector(".verb").textContent = this.playing ? this.texts.pause : this.texts.play;
    const time = `${clock(at)} / ${clock(this.length)}`;
    const share = Math.floor(100 * this.share + 1e-6);
    const heard = this.needed ? fill(this.texts.heard_of, { seconds: Math.floor(this.heardSeconds + 0.05) }) : fill(this.texts.heard, { share });
    const progress = this.root.querySelector("progress");
    this.root.querySelector(".time").textContent = progress ? time : `${time} · ${heard}`;
    if (progress) {
      progress.value = this.needed ? Math.min(100, (100 * this.heardSeconds) / this.needed) : share;
      this.root.querySelector(".share").textContent = heard;
    }
    this.canvas.setAttribute("aria-valuemax", this.length.toFixed(1));
    this.canvas.setAttribute("aria-valuenow", Math.min(at, this.length).toFixed(1));
    this.canvas.setAttribute("aria-valuetext", time);
    this.draw();
  }

  draw() {
    this.wave.draw(this.sound.currentTime, this.length, this.length, this.heard());
  }

  /** Give the sound back. */
  leave() {
    this.loaded = false;
    this.wave.watch.disconnect();
    this.sound.pause();
    this.sound.removeAttribute("src");
    this.sound.load();
  }
}

/** The recordings of one page: one plays at a time, and a change of recording may keep the position. */
export class Deck {
  /** `together`: whether a change of recording keeps the position; `changed` is called when something more was heard. */
  constructor(texts, together, changed) {
    Object.assign(this, { texts, together, changed, tracks: new Map(), current: null });
  }

  /** Take the recording of an element, and what was heard of it before. */
  add(root, before = {}) {
    const { key, audio, peaks, seconds } = root.dataset;
    const track = new Player(root, { texts: this.texts, step: 2, changed: this.changed, toggle: () => this.toggle(key) });
    track.take(audio, peaks, Number(seconds) || 0, before.stretches, before.share);
    this.tracks.set(key, track);
  }

  get playing() {
    return this.current !== null && this.tracks.get(this.current).playing;
  }

  play(key) {
    const next = this.tracks.get(key);
    const last = this.current === null ? next : this.tracks.get(this.current);
    const keeps = this.together && last !== next && (last.playing || last.sound.currentTime > 0) && !last.sound.ended;
    const at = keeps ? last.sound.currentTime : undefined;
    if (last !== next) last.stop();
    this.current = key;
    for (const track of this.tracks.values()) track.root.classList.toggle("current", track === next);
    next.play(at);
  }

  toggle(key) {
    if (this.tracks.get(key).playing) this.tracks.get(key).stop();
    else this.play(key);
  }

  /** Play or pause what was played last; the first one where nothing was. */
  again() {
    if (this.tracks.size) this.toggle(this.current ?? this.tracks.keys().next().value);
  }

  /** Whether a recording begins anew at its end. */
  repeat(wanted) {
    for (const track of this.tracks.values()) track.sound.loop = wanted;
  }

  /** What was heard, to be kept over a reload. */
  heard() {
    return Object.fromEntries([...this.tracks].map(([key, track]) => [key, { stretches: track.heard(), share: track.share }]));
  }

  leave() {
    for (const track of this.tracks.values()) track.leave();
  }
}
