// What pages do with runs.

import { post } from "./api.js";
import { plural } from "./format.js";
import { confirm, notice } from "./parts.js";

/** Removes runs, after a question, and says what came of it. Whether any went. */
export async function remove(names) {
  const what = names.length === 1 ? names[0] : plural(names.length, "run");
  const sure = await confirm(`Remove ${what}?`, "All that a run has is removed: its curves, its checkpoints, its model. This cannot be undone.", "Remove");
  if (!sure) return false;
  try {
    const done = await post("runs/actions", { action: "delete", ids: names });
    const wrong = done.filter((one) => one.error);
    if (done.length > wrong.length) notice(`${plural(done.length - wrong.length, "run")} ${done.length - wrong.length === 1 ? "was" : "were"} removed`);
    wrong.slice(0, 3).forEach((one) => notice(one.error, true));
    return done.length > wrong.length;
  } catch (error) {
    notice(error.message, true);
    return false;
  }
}
