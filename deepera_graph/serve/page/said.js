// What a page says: how it goes, what went wrong, and which key it asks for.
import { Trouble, forgetKey, hasKey, useKey } from "./api.js";
import { byId, el } from "./dom.js";

/** Tell a screen reader, and everybody if nothing else on the page says it. */
export function say(words, { shown = false } = {}) {
  byId("status").textContent = words;
  byId("status").classList.toggle("is-shown", shown && Boolean(words));
}

export const clearTrouble = () => { byId("trouble").replaceChildren(); byId("bar").hidden = false; };

/** Say what went wrong, with a way to do it again; or ask for a key, if that is what is wrong. */
export function tell(error, again) {
  if (error.status === 401) return askKey(again);
  const trouble = error instanceof Trouble ? error : new Trouble(`Something on this page failed: ${error.message}`);
  const retry = el("button", { type: "button" }, "Try again");
  retry.addEventListener("click", () => { clearTrouble(); again(); });
  byId("trouble").replaceChildren(el("div", { class: "note bad" },
    el("p", {}, [trouble.message, trouble.hint].filter(Boolean).join(" ")), again && retry));
  if (byId("found").hidden) byId("welcome").hidden = true;
  byId("trouble").scrollIntoView({ block: "nearest" });
  say("");
  return undefined;
}

/** Say beside a field what is wrong with it. */
export function complain(name, message, focus = true) {
  byId(`${name}-error`).textContent = message;
  byId(name).setAttribute("aria-invalid", String(Boolean(message)));
  if (message && focus) byId(name).focus();
}

function askKey(again) {
  const dialog = byId("ask-key");
  byId("ask-key-why").textContent = hasKey() ? "The key of this tab was refused: this server does not know it." : "Whoever runs it gives them out.";
  byId("key").value = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue !== "use" || !byId("key").value) return;
    useKey(byId("key").value);
    byId("key").value = "";
    showKey();
    again();
  }, { once: true });
  dialog.returnValue = "";
  dialog.showModal();
}

const showKey = () => { byId("forget").hidden = !hasKey(); };

/** Have a key be forgotten that this tab was given. */
export function listenToKey() {
  byId("forget").addEventListener("click", () => { forgetKey(); showKey(); say("The key is forgotten.", { shown: true }); });
  showKey();
}
