// What pages do with jobs.

import { post } from "./api.js";
import { plural } from "./format.js";
import { confirm, notice } from "./parts.js";

const DONE = { stop: "asked to stop", resubmit: "submitted once more", delete: "forgotten" };

/** Whether a job stays as it is. */
export const ended = (job) => ["STOPPED", "SUCCEEDED", "FAILED"].includes(job.status);

/** Does something with jobs, and says what came of it. */
export async function act(action, ids) {
  if (action === "delete") {
    const sure = await confirm(`Forget ${plural(ids.length, "job")}?`, "The log and the folder of a job are removed. Its runs stay.", "Forget");
    if (!sure) return [];
  }
  try {
    const done = await post("jobs/actions", { action, ids });
    const wrong = done.filter((one) => one.error);
    if (done.length > wrong.length) notice(`${plural(done.length - wrong.length, "job")} ${done.length - wrong.length === 1 ? "was" : "were"} ${DONE[action]}`);
    wrong.slice(0, 3).forEach((one) => notice(one.error, true));
    return done.filter((one) => !one.error);
  } catch (error) {
    notice(error.message, true);
    return [];
  }
}

/** A time of a job in seconds. */
export const seconds = (ms) => (ms === null || ms === undefined ? null : ms / 1000);
