// A block of Python: its words in a few colours, and a button that copies it.

import { make } from "./element.js";

const NAMES =
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield None True False";
const KEYWORDS = new Set(NAMES.split(" "));
const PART =
  /(#[^\n]*)|([rbfuRBFU]{0,2}(?:"""[^]*?"""|'''[^]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))|(\b\d[\w.]*\b)|([A-Za-z_]\w*)|([^]?)/y;
const SHOWN = 1500; // milliseconds

/** The code with its button. */
export function drawCode(text) {
  const code = make("code", {}, ...coloured(text));
  const pre = make("pre", { tabindex: 0, "aria-label": "Python" }, code);
  const button = make("button", { type: "button", class: "copy", onclick: () => copy(button, code) }, "Copy");
  return make("div", { class: "code" }, pre, button);
}

function coloured(text) {
  const parts = [];
  PART.lastIndex = 0;
  while (PART.lastIndex < text.length) {
    const [whole, comment, string, number, name] = PART.exec(text);
    const kind = comment ? "comment" : string ? "string" : number ? "digits" : KEYWORDS.has(name) ? "keyword" : "";
    if (kind) parts.push(make("span", { class: kind }, whole));
    else if (typeof parts.at(-1) === "string") parts.push(parts.pop() + whole);
    else parts.push(whole);
  }
  return parts;
}

/** Copies, or where that is not allowed selects, and says which. */
async function copy(button, code) {
  getSelection().selectAllChildren(code);
  let told = "Copied";
  try {
    await navigator.clipboard.writeText(code.textContent);
    getSelection().removeAllRanges();
  } catch {
    told = document.execCommand("copy") ? told : "Selected: press Ctrl-C";
  }
  button.textContent = told;
  setTimeout(() => (button.textContent = "Copy"), SHOWN);
}
