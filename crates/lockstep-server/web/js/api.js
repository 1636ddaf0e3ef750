// Questions to the server.

/** What the server said no with. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer. It may have been stopped.");
  }
  if (answer.status === 401) location.assign(`/login?to=${encodeURIComponent(location.pathname + location.search)}`);
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim() || answer.statusText);
  return answer.json();
}

/** Writes a query; values that are empty are left out. */
export function query(values) {
  const known = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  const text = new URLSearchParams(known.map(([key, value]) => [key, String(value)])).toString();
  return text ? `?${text}` : "";
}

/** Gets JSON from `/api/v1`. */
export function get(path, values = {}, signal = undefined) {
  return ask(`/api/v1/${path}${query(values)}`, { signal });
}

/** Posts JSON to `/api/v1`. The header tells the server that it was one of its own pages. */
export function post(path, body) {
  const headers = { "content-type": "application/json", "x-lockstep": "1" };
  return ask(`/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

/** A part of an address, such as a run's name. */
export const part = encodeURIComponent;
