// One side: its sound, its picture, and what of it was heard.

const STEP = 5;

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

export class Player {
  /**
   * @param {HTMLElement} root the side's place on the page
   * @param {object} texts of the page
   * @param {{started(Player): void, changed(Player): void, ended(Player): void}} owner
   */
  constructor(root, texts, owner) {
    this.root = root;
    this.texts = texts;
    this.owner = owner;
    this.button = root.querySelector(".play");
    this.canvas = root.querySelector(".wave");
    this.wholeButton = root.querySelector(".whole");
    this.excerpt = new Audio();
    this.excerpt.preload = "auto";
    this.whole = null;
    this.sound = this.excerpt;
    this.peaks = { excerpt: [], whole: null };
    this.clear();
    this.listen(this.excerpt);
    this.button.addEventListener("click", () => this.toggle());
    this.wholeButton.addEventListener("click", () => this.exchange());
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
    this.canvas.addEventListener("keydown", (event) => this.keyed(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  clear() {
    this.side = null;
    this.before = [];
    this.secondsBefore = 0;
    this.since = null;
    this.loaded = false;
  }

  /** Take a side of a battle, and what was heard of it before the page was loaded anew. */
  async take(side, heard = [], seconds = 0) {
    this.stop();
    this.leaveWhole();
    this.clear();
    this.side = side;
    this.before = merged(heard);
    this.secondsBefore = seconds;
    this.peaks = { excerpt: [], whole: null };
    this.excerpt.src = `/audio/${side.excerpt}`;
    this.loaded = true;
    this.wholeButton.hidden = side.whole_seconds - side.seconds < 0.5;
    this.wholeButton.textContent = fill(this.texts.whole, { time: clock(side.whole_seconds) });
    this.complain(false);
    this.show();
    this.peaks.excerpt = await this.picture(side.excerpt);
    this.draw();
  }

  async picture(name) {
    try {
      const answer = await fetch(`/audio/${name}/peaks`, { credentials: "same-origin" });
      return answer.ok ? (await answer.json()).peaks : [];
    } catch {
      return [];
    }
  }

  listen(sound) {
    const mine = (does) => () => sound === this.sound && does();
    sound.addEventListener("playing", mine(() => this.begin()));
    for (const name of ["pause", "waiting", "ended", "seeking"]) sound.addEventListener(name, mine(() => this.rest()));
    for (const name of ["timeupdate", "durationchange", "seeked", "play", "pause"]) {
      sound.addEventListener(name, mine(() => this.show()));
    }
    sound.addEventListener("timeupdate", () => this.owner.changed(this));
    sound.addEventListener("error", mine(() => this.complain(true)));
    sound.addEventListener("ended", () => {
      this.show();
      this.owner.changed(this);
      if (sound === this.excerpt) this.owner.ended(this);
    });
  }

  begin() {
    if (this.sound === this.excerpt) this.since ??= performance.now();
    this.complain(false);
    this.animate();
  }

  rest() {
    if (this.since !== null) this.secondsBefore += (performance.now() - this.since) / 1000;
    this.since = null;
  }

  get playing() {
    return !this.sound.paused && !this.sound.ended;
  }

  get length() {
    return this.sound === this.excerpt ? this.side?.seconds ?? 0 : this.side?.whole_seconds ?? 0;
  }

  /** How long the excerpt was playing. */
  get seconds() {
    return this.secondsBefore + (this.since === null ? 0 : (performance.now() - this.since) / 1000);
  }

  /** Stretches of the excerpt that were played. */
  heard() {
    if (!this.side) return [];
    const played = this.excerpt.played;
    const now = Array.from({ length: played.length }, (_, place) => [played.start(place), played.end(place)]);
    const length = this.side.seconds;
    return merged([...this.before, ...now].map(([begin, end]) => [
      Math.max(0, begin), end > length - 0.1 ? length : Math.min(end, length),
    ]));
  }

  get share() {
    if (!this.side?.seconds) return 1;
    return Math.min(1, this.heard().reduce((sum, [begin, end]) => sum + end - begin, 0) / this.side.seconds);
  }

  async play() {
    if (!this.side) return false;
    if (this.sound.error) this.renew();
    if (this.sound.ended) this.sound.currentTime = 0;
    this.owner.started(this);
    try {
      await this.sound.play();
      return true;
    } catch (error) {
      // A pause that came first is no fault; neither is a browser that wants a key pressed for each sound.
      if (error.name === "NotSupportedError") this.complain(true);
      return false;
    }
  }

  stop() {
    this.sound.pause();
  }

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  /** Load a sound again that broke off, at its place, without forgetting what was heard. */
  renew() {
    const at = this.sound.currentTime;
    this.before = this.heard();
    this.sound.load();
    this.sound.currentTime = at;
  }

  seek(seconds) {
    if (!this.side) return;
    // Chromium waits for ever after a seek to less before the end of FLAC.
    this.sound.currentTime = Math.min(Math.max(0, seconds), Math.max(0, this.length - 0.25));
    this.show();
  }

  step(direction) {
    this.seek(this.sound.currentTime + direction * STEP);
  }

  async exchange() {
    const was = this.playing;
    this.stop();
    if (this.sound !== this.excerpt) {
      this.leaveWhole();
    } else {
      if (!this.whole) {
        this.whole = new Audio();
        this.whole.preload = "metadata";
        this.listen(this.whole);
      }
      const address = `/audio/${this.side.whole}`;
      if (!this.whole.src.endsWith(address)) this.whole.src = address;
      this.sound = this.whole;
      this.wholeButton.textContent = this.texts.excerpt;
      if (!this.peaks.whole) this.picture(this.side.whole).then((peaks) => { this.peaks.whole = peaks; this.draw(); });
    }
    this.root.querySelector(".whole-note").hidden = this.sound === this.excerpt;
    this.show();
    if (was) this.play();
  }

  leaveWhole() {
    if (this.whole) this.whole.pause();
    this.sound = this.excerpt;
    if (this.side) this.wholeButton.textContent = fill(this.texts.whole, { time: clock(this.side.whole_seconds) });
    this.root.querySelector(".whole-note").hidden = true;
  }

  complain(broken) {
    const place = this.root.querySelector(".broken");
    place.hidden = !broken;
    place.textContent = broken ? this.texts.audio : "";
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
    if (event.key === " ") this.toggle();
    else if (to !== undefined) this.seek(to);
    else return;
    event.preventDefault();
    event.stopPropagation();
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
    this.root.querySelector(".time").textContent = time;
    this.canvas.setAttribute("aria-valuemax", this.length.toFixed(1));
    this.canvas.setAttribute("aria-valuenow", Math.min(at, this.length).toFixed(1));
    this.canvas.setAttribute("aria-valuetext", time);
    const share = Math.floor(100 * this.share + 1e-6);
    this.root.querySelector("progress").value = share;
    this.root.querySelector(".share").textContent = fill(this.texts.heard, { share });
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const peaks = this.sound === this.excerpt ? this.peaks.excerpt : this.peaks.whole ?? [];
    if (!width || !this.side) return;
    const dots = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * dots)) this.canvas.width = Math.round(width * dots);
    if (this.canvas.height !== Math.round(height * dots)) this.canvas.height = Math.round(height * dots);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(dots, 0, 0, dots, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.root);
    const [own, quiet, text] = ["--side", "--quiet", "--text"].map((name) => style.getPropertyValue(name).trim());
    const heard = this.sound === this.excerpt ? this.heard() : [];
    const bars = Math.floor(width / 3);
    const most = Math.max(0.05, ...peaks);
    let place = 0;
    for (let bar = 0; bar < bars; bar++) {
      const first = Math.floor((bar * peaks.length) / bars);
      const last = Math.max(first + 1, Math.floor(((bar + 1) * peaks.length) / bars));
      const peak = peaks.length ? Math.max(...peaks.slice(first, last)) / most : 0;
      const tall = Math.max(2, peak * (height - 6));
      const second = ((bar + 0.5) / bars) * this.length;
      while (place < heard.length && heard[place][1] < second) place++;
      const was = place < heard.length && heard[place][0] <= second;
      pen.fillStyle = was ? own : quiet;
      pen.globalAlpha = was ? 1 : 0.75;
      pen.fillRect(bar * 3, (height - tall) / 2, 2, tall);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = text;
    pen.fillRect(Math.min(width - 2, (this.sound.currentTime / (this.length || 1)) * width), 0, 2, height);
  }
}
