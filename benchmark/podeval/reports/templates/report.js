"use strict";
for (const article of document.querySelectorAll("article")) {
  const audio = article.querySelector("audio");
  if (!audio) continue;
  const seconds = Number(article.dataset.seconds) || 1;
  const cursor = article.querySelector(".cursor");
  const words = [...article.querySelectorAll(".transcription span[data-t]")];
  const times = words.map((word) => Number(word.dataset.t));
  let now = null;

  const playFrom = (time) => {
    audio.currentTime = Math.max(0, Math.min(time, seconds));
    audio.play().catch(() => {});
  };
  article.addEventListener("click", (event) => {
    const timed = event.target.closest("[data-t]");
    if (timed) return playFrom(Number(timed.dataset.t));
    const track = event.target.closest(".track");
    if (!track) return;
    const picture = track.querySelector("svg");
    const box = picture.getBoundingClientRect();
    const isPlot = track.classList.contains("plot");
    // A plot over tokens says nothing of when they are spoken.
    const length = isPlot ? Number(picture.dataset.length) : seconds;
    if (!length) return;
    // Plots have margins beside their axis: 48 and 12 of 720.
    const [left, right] = isPlot ? [48 / 720, 12 / 720] : [0, 0];
    const share = ((event.clientX - box.left) / box.width - left) / (1 - left - right);
    playFrom(Math.max(0, Math.min(1, share)) * length);
  });
  const countBegun = (time) => {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time + 0.05) low = middle + 1; else high = middle;
    }
    return low;
  };
  const transcript = article.querySelector(".transcription");
  transcript?.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !times.length || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = countBegun(audio.currentTime) - 1 + step;
    playFrom(times[Math.max(0, Math.min(next, times.length - 1))]);
  });
  const isSeen = (word) =>
    word.offsetTop >= transcript.scrollTop && word.offsetTop < transcript.scrollTop + transcript.clientHeight - 20;
  audio.addEventListener("timeupdate", () => {
    cursor.style.left = `${(100 * audio.currentTime) / seconds}%`;
    const begun = countBegun(audio.currentTime);
    const word = begun ? words[begun - 1] : null;
    if (word === now) return;
    // Who reads elsewhere in the transcript is left there.
    if (word && !isSeen(word) && (!now || isSeen(now))) transcript.scrollTop = word.offsetTop - transcript.clientHeight / 3;
    if (now) now.classList.remove("now");
    if (word) word.classList.add("now");
    now = word;
  });
}
