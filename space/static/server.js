// Requests to the server; a missing answer is distinguished from a refusal.

/**
 * The server refused, giving the reason as a word and a sentence and perhaps the time to wait; or it did not answer at
 * all (no status), so it is unknown whether the request arrived.
 */
export class Refusal extends Error {
  constructor(status = 0, { reason = "", sentence, error = "" } = {}, after = 0) {
    super(sentence ?? error);
    Object.assign(this, { status, reason, after });
  }
}

const PATIENCE = 20_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 5_000;

/** Return the server's answer to a request with the options of `fetch`. */
export async function get(address, options) {
  let answer, content;
  try {
    answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options });
    content = await answer.json();
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal();
  }
  if (answer.ok || content?.nothing) return content; // a board that states why it is empty
  if (typeof content?.error !== "string") throw new Refusal();
  throw new Refusal(answer.status, content, Number(answer.headers.get("Retry-After")) || 0);
}

export function post(address, content) {
  const headers = { "Content-Type": "application/json", "X-Podeval": "1" };
  return get(address, { method: "POST", headers, body: JSON.stringify(content) });
}

/** Repeat a request until there is an answer; report the reason for waiting, "" at the end. A refusal is thrown. */
export async function insist(ask, say = () => {}) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      const answer = await ask();
      say("");
      return answer;
    } catch (error) {
      const hasty = error.status === 429;
      const down = !error.status || (error.status >= 500 && error.reason !== "closed");
      if (!(error instanceof Refusal && (hasty || down))) throw error;
      say(hasty ? error.message : null);
      await new Promise((done) => setTimeout(done, hasty ? 1000 * (error.after || 5) : wait));
    }
  }
}
