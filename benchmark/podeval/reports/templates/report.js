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
  const isSeen = ({ offsetTop: top }) =>
    top >= transcript.scrollTop && top < transcript.scrollTop + transcript.clientHeight - 20;

  article.addEventListener("click", ({ target, clientX }) => {
    const timed = target.closest("[data-t]");
    const plot = target.closest("svg[data-length]");
    if (timed) playFrom(Number(timed.dataset.t));
    if (!plot) return;
    // Plots have margins beside their axis: 48 and 12 of 720. One over tokens has no length.
    const box = plot.getBoundingClientRect();
    playFrom((((clientX - box.left) / box.width) * 720 - 48) / 660 * plot.dataset.length);
  });
  at.addEventListener("input", () => playFrom(at.value));
  audio.addEventListener("timeupdate", () => {
    at.value = audio.currentTime;
    const word = words.findLast(({ dataset }) => Number(dataset.t) <= audio.currentTime + 0.05);
    if (word === now) return;
    // Do not scroll if the reader has moved to another part of the transcript.
    const follows = word && !isSeen(word) && (!now || isSeen(now));
    if (follows) transcript.scrollTop = word.offsetTop - transcript.clientHeight / 3;
    now?.classList.remove("now");
    word?.classList.add("now");
    now = word;
  });
}
