// What pages do with models: a run's becomes a version, and aliases point to versions.

import { part, post } from "./api.js";
import { h } from "./dom.js";
import { ask, confirm, notice } from "./parts.js";
import { go } from "./router.js";

/** The alias of the version that is in use. */
export const CHAMPION = "champion";

/** The version that a model's name stands for on its page: the champion, else what the first alias means, else the newest. */
export function used(model) {
  const alias = CHAMPION in model.aliases ? CHAMPION : Object.keys(model.aliases)[0];
  const number = alias ? model.aliases[alias] : model.versions.at(-1)?.number;
  return { version: model.versions.find((one) => one.number === number), alias: alias ?? null };
}

/** Asks for a name, and makes a version from what a run has learned. */
export function register(run) {
  const name = h("input", { type: "text", id: "model-name", value: run.job, required: true, spellcheck: "false" });
  const note = h("input", { type: "text", id: "model-note" });
  ask("Register the model", "Register", [
    h("p", { class: "soft" }, "What this run has learned is copied, and becomes the next version of a model. The run may go later."),
    h("label", { for: "model-name" }, "Model"), name, h("label", { for: "model-note" }, "Note"), note,
  ], async () => {
    const made = await post("models", { name: name.value.trim(), run: run.name, note: note.value.trim() });
    notice(`This is ${made.name}@${made.number} now`);
    go(`/models/${part(made.name)}`);
  });
}

/** Points an alias to a version, or to none. Whether that was done. */
export async function point(model, alias, version) {
  const now = model.aliases[alias];
  const words = version === null ? `${model.name}@${alias} will mean nothing.`
    : now ? `${model.name}@${alias} means version ${now} until now, and version ${version} from now on.` : `${model.name}@${alias} will mean version ${version}.`;
  if (!(await confirm(version === null ? `Take ${alias} away?` : `Make version ${version} the ${alias}?`, words, version === null ? "Take away" : "Point"))) return false;
  try {
    await post(`models/${part(model.name)}/aliases`, { alias, version });
    return true;
  } catch (error) {
    notice(error.message, true);
    return false;
  }
}

/** Asks for an alias of a version. */
export function alias(model, version, done) {
  const name = h("input", { type: "text", id: "alias-name", required: true, spellcheck: "false", placeholder: "staging" });
  ask(`An alias for version ${version}`, "Point", [
    h("p", { class: "soft" }, "Commands can say the alias instead of the number."), h("label", { for: "alias-name" }, "Alias"), name,
  ], async () => {
    await post(`models/${part(model.name)}/aliases`, { alias: name.value.trim(), version });
    done();
  });
}
