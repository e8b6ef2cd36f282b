"use strict";
for (const article of document.querySelectorAll("article")) {
  const audio = article.querySelector("audio");
  if (!audio) continue;
  const seconds = Number(article.dataset.seconds) || 1;
  const cursor = article.querySelector(".cursor");
  const words = [...article.querySelectorAll(".transcript span[data-t]")];
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
    const box = track.getBoundingClientRect();
    // Plots have margins beside their axis: 48 and 12 of 720.
    const [left, right] = track.classList.contains("plot") ? [48 / 720, 12 / 720] : [0, 0];
    const share = ((event.clientX - box.left) / box.width - left) / (1 - left - right);
    playFrom(Math.max(0, Math.min(1, share)) * seconds);
  });
  audio.addEventListener("timeupdate", () => {
    cursor.style.left = `${(100 * audio.currentTime) / seconds}%`;
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= audio.currentTime + 0.05) low = middle + 1; else high = middle;
    }
    const word = low ? words[low - 1] : null;
    if (word === now) return;
    if (now) now.classList.remove("now");
    if (word) word.classList.add("now");
    now = word;
  });
}
