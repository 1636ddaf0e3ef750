// What pages do with jobs.

import { post } from "./api.js";
import { plural } from "./format.js";
import { confirm, notice } from "./parts.js";

const DONE = { stop: "asked to stop", resubmit: "submitted once more", delete: "forgotten" };

const QUESTIONS = {
  stop: ["Stop", "Its command is asked to end, and ended if it does not. A run of Lockstep keeps a checkpoint, from which it can go on."],
  delete: ["Forget", "The log of a job is removed, and its folder with all that its command wrote there. Runs in the store stay."],
};

/** Whether a job stays as it is. */
export const ended = (job) => ["STOPPED", "SUCCEEDED", "FAILED"].includes(job.status);

/** Does something with jobs, and says what came of it. */
export async function act(action, ids) {
  const question = QUESTIONS[action];
  if (question && !(await confirm(`${question[0]} ${plural(ids.length, "job")}?`, question[1], question[0]))) return [];
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
