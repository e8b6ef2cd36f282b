"use strict";
for (const article of document.querySelectorAll("article")) {
  const audio = article.querySelector("audio");
  if (!audio) continue;
  const seconds = Number(article.dataset.seconds) || 1;
  const transcript = article.querySelector(".transcription");
  const words = [...article.querySelectorAll(".transcription span[data-t]")];
  let now = null;

  const playFrom = (time) => {
    audio.currentTime = Math.max(0, Math.min(time, seconds));
    audio.play().catch(() => {});
  };
  const playWord = (word) => playFrom(Number(word.dataset.t));
  const findLast = () => words.findLastIndex((word) => Number(word.dataset.t) <= audio.currentTime + 0.05);
  const isSeen = ({ offsetTop: top }) =>
    top >= transcript.scrollTop && top < transcript.scrollTop + transcript.clientHeight - 20;

  article.addEventListener("click", ({ target, clientX }) => {
    const timed = target.closest("[data-t]");
    const track = target.closest(".track");
    if (timed) return playWord(timed);
    if (!track) return;
    const picture = track.querySelector("svg");
    const box = picture.getBoundingClientRect();
    const isPlot = track.classList.contains("plot");
    // Plots have margins beside their axis: 48 and 12 of 720. A plot over tokens does not show when they are spoken.
    const [left, width] = isPlot ? [48 / 720, 660 / 720] : [0, 1];
    const share = ((clientX - box.left) / box.width - left) / width;
    const length = isPlot ? Number(picture.dataset.length) : seconds;
    if (length) playFrom(Math.max(0, Math.min(1, share)) * length);
  });
  transcript?.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !words.length || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    playWord(words[Math.max(0, Math.min(findLast() + step, words.length - 1))]);
  });
  audio.addEventListener("timeupdate", () => {
    article.querySelector(".cursor").style.left = `${(100 * audio.currentTime) / seconds}%`;
    const word = words[findLast()];
    if (word === now) return;
    // Do not scroll if the reader has moved to another part of the transcript.
    const follows = word && !isSeen(word) && (!now || isSeen(now));
    if (follows) transcript.scrollTop = word.offsetTop - transcript.clientHeight / 3;
    now?.classList.remove("now");
    word?.classList.add("now");
    now = word;
  });
}
