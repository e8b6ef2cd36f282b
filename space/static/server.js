// What a page asks of the server, and how an answer that is none is told from a refusal.

/**
 * The server says no, why in a word and in a sentence, and perhaps when to ask again; or nothing, not even a status,
 * and nobody knows whether what was sent arrived.
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

/** What the server answers to a question with the options of `fetch`. */
export async function get(address, options) {
  let answer, content;
  try {
    answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options });
    content = await answer.json();
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal();
  }
  if (answer.ok || content?.nothing) return content; // a board that says why there is nothing on it
  if (typeof content?.error !== "string") throw new Refusal();
  throw new Refusal(answer.status, content, Number(answer.headers.get("Retry-After")) || 0);
}

export function post(address, content) {
  const headers = { "Content-Type": "application/json", "X-Podeval": "1" };
  return get(address, { method: "POST", headers, body: JSON.stringify(content) });
}

/** Ask until there is an answer; what is waited for is said, "" at the end. A refusal is thrown. */
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
