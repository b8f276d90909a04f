// Questions to the server of the page.

import { make } from "./element.js";

let key = ""; // that a server asked for
let asking = null; // for a key, while it is asked for

/**
 * What the server answered; an error says why there is no answer.
 * isGone: the server does not run any more. most, fits: of a text that is too long, the tokens that the view takes and
 * how many characters from the first on these are. isTooMuch: it is too long for anybody to have counted.
 */
export async function ask(path, body = undefined, signal = undefined) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const shown = key;
  if (shown) headers.Authorization = `Bearer ${shown}`;
  const given = { method: body === undefined ? "GET" : "POST", headers, signal, body: JSON.stringify(body) };
  let answer;
  let told;
  try {
    answer = await fetch(path, given);
    told = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const message = "The server does not answer. Start regard lab again, then try once more.";
    throw Object.assign(new Error(message), { isGone: true });
  }
  if (answer.status === 401 && (shown !== key || (await keyGiven()))) return ask(path, body, signal);
  if (!answer.ok) {
    const { error = `the server answered ${answer.status}`, most, fits } = told;
    throw Object.assign(new Error(error), { most, fits, isTooMuch: answer.status === 413 });
  }
  return told;
}

/** Asks for a key, once for all questions that wait for it; whether one was given. */
function keyGiven() {
  asking ??= new Promise((answer) => {
    const input = make("input", { type: "password", autocomplete: "off", "aria-label": "Key" });
    const told = key ? "This is none of the keys of the server." : "The server asks for a key.";
    const go = make("button", { type: "submit" }, "Go on");
    const box = make("dialog", { class: "key", onclose: () => done() }, make("form", { method: "dialog" }, told, input, go));
    const done = () => {
      key = box.returnValue === "given" ? input.value.trim() : key;
      box.remove();
      asking = null;
      answer(box.returnValue === "given" && key !== "");
    };
    go.value = "given";
    document.body.append(box);
    box.showModal();
  });
  return asking;
}
