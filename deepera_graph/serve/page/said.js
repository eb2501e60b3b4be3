// What pages share: their head and foot, how it goes, what went wrong, and which key is asked for.
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

/** Put around a page what all have: the way to the others, the foot, and the dialog that asks for a key. */
export function frame() {
  const forget = el("button", { type: "button", id: "forget", class: "plain" }, "Forget the key");
  forget.addEventListener("click", () => { forgetKey(); showKey(); say("The key is forgotten.", { shown: true }); });
  const head = document.querySelector("header.top");
  head.prepend(el("img", { src: "page/icon.svg", alt: "", width: 32, height: 32 }));
  head.append(el("nav", { "aria-label": "Pages" }, wayTo("./", "Find evidence"), " ", wayTo("check", "Check a manuscript")), forget);
  document.body.append(el("footer", { class: "soft small" }, el("p", {},
    "Nothing on this page comes from another host. Texts go to this server, and to the judge that it runs. ",
    el("a", { href: "docs" }, "HTTP interface"))), keyDialog());
  showKey();
}

const wayTo = (path, words) =>
  el("a", { href: path, "aria-current": new URL(path, location).pathname === location.pathname && "page" }, words);

const keyDialog = () => el("dialog", { id: "ask-key", "aria-labelledby": "ask-key-title" }, el("form", { method: "dialog" },
  el("h2", { id: "ask-key-title" }, "This server asks for a key"),
  el("p", { id: "ask-key-why", class: "small" }),
  el("label", { for: "key" }, "Key"),
  el("input", { type: "password", id: "key", autocomplete: "off", required: true }),
  el("p", { class: "small soft" }, "Kept for this tab only, until you close it."),
  el("div", { class: "row actions" },
    el("button", { value: "use", class: "main" }, "Use it"),
    el("button", { value: "", formnovalidate: true }, "Cancel"))));
