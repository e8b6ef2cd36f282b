// What the arena says to the server, and how an answer that is none is told from a refusal.

/** No answer: nobody knows whether it arrived. */
export class NoAnswer extends Error {}

/** The server says no, why in a word and in a sentence, and perhaps when to ask again. */
export class Refusal extends Error {
  constructor(status, reason, sentence, after) {
    super(sentence);
    this.status = status;
    this.reason = reason;
    this.after = after;
  }
}

const PATIENCE = 20_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

async function ask(address, options) {
  let answer, content;
  try {
    answer = await fetch(address, { ...options, credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    content = await answer.json();
  } catch {
    throw new NoAnswer();
  }
  if (answer.ok) return content;
  if (!content || typeof content.error !== "string") throw new NoAnswer();
  throw new Refusal(answer.status, content.reason ?? "", content.sentence ?? content.error, Number(answer.headers.get("Retry-After")) || 0);
}

export const get = (address) => ask(address, {});

export const post = (address, content) =>
  ask(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Podeval": "1" },
    body: JSON.stringify(content),
  });

/** Ask until there is an answer; what it waits for is said, `""` at the end. Refusals are thrown but for haste or a server in trouble. */
export async function insist(ask, say) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      const answer = await ask();
      say("");
      return answer;
    } catch (error) {
      const hasty = error instanceof Refusal && error.status === 429;
      const down = error instanceof Refusal && error.status >= 500 && error.reason !== "closed";
      if (!(error instanceof NoAnswer || hasty || down)) throw error;
      say(hasty ? error.message : null);
      await pause(hasty ? 1000 * (error.after || 5) : wait);
    }
  }
}

/** Wait so many milliseconds, less where the network comes back before. */
export function pause(milliseconds) {
  return new Promise((done) => {
    setTimeout(done, milliseconds);
    addEventListener("online", done, { once: true });
  });
}

/** What this tab or browser remembers under a name, after a value was set (null forgets it); nothing where it keeps nothing. */
export function remember(storage, name, value) {
  try {
    if (value === null) window[storage].removeItem(name);
    else if (value !== undefined) window[storage].setItem(name, JSON.stringify(value));
    return JSON.parse(window[storage].getItem(name));
  } catch {
    return null;
  }
}

/** An id nobody else has; also where the page is not served over HTTPS. */
export function chance() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
