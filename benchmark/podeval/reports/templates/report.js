"use strict";
for (const article of document.querySelectorAll("article")) {
  const [audio, at] = article.querySelectorAll(".player :is(audio, .at)");
  if (!at) continue;
  const transcript = article.querySelector(".transcription");
  const words = [...article.querySelectorAll(".transcription span[data-t]")];
  let now = null;

  const playFrom = (time) => {
    audio.currentTime = time;
    audio.play().catch(() => {});
  };
  const playWord = (word) => playFrom(Number(word.dataset.t));
  const findLast = () => words.findLastIndex((word) => Number(word.dataset.t) <= audio.currentTime + 0.05);
  const isSeen = ({ offsetTop: top }) =>
    top >= transcript.scrollTop && top < transcript.scrollTop + transcript.clientHeight - 20;

  article.addEventListener("click", ({ target, clientX }) => {
    const timed = target.closest("[data-t]");
    const plot = target.closest("svg[data-length]");
    if (timed) playWord(timed);
    if (!plot) return;
    // Plots have margins beside their axis: 48 and 12 of 720. One over tokens has no length.
    const box = plot.getBoundingClientRect();
    playFrom((((clientX - box.left) / box.width) * 720 - 48) / 660 * plot.dataset.length);
  });
  at.addEventListener("input", () => playFrom(at.value));
  transcript?.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !words.length || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    playWord(words[Math.max(0, Math.min(findLast() + step, words.length - 1))]);
  });
  audio.addEventListener("timeupdate", () => {
    at.value = audio.currentTime;
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
