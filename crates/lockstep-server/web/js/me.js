// Who looks at these pages, and what that one may do. What is not allowed is not offered; the server checks it again.

import { get } from "./api.js";

let asked = null;

/** Who it is: `{ name, role, has_token }`. Asked once. */
export function me() {
  asked ??= get("me").catch((error) => { asked = null; throw error; });
  return asked;
}

/** Whether that one may change anything at all. */
export const maySubmit = ({ role }) => role !== "read";

/** Whether that one may change what is of `owner`. */
export const mayChange = ({ name, role }, owner) => role === "admin" || role === "submit" && name === owner;
