// The keys of show mode, in a box that one of them opens.

import { make } from "./element.js";

const KEYS = [
  ["→  PageDown  Space", "on: the next step, or the next screen"],
  ["←  PageUp  Backspace", "back"],
  ["Home  End", "the first screen, the last one"],
  ["12 Enter", "the screen of a number"],
  ["s", "the speaker's window: notes, the next screen, a clock; both windows go in step"],
  ["f", "full screen"],
  ["Esc", "out of a map or a field; out of the show"],
  ["?", "these keys"],
];

/** The box. */
export function helpBox() {
  const row = ([keys, what]) => [
    make("dt", {}, ...keys.split("  ").map((key) => make("kbd", {}, key))),
    make("dd", {}, what),
  ];
  const close = make("button", { type: "button", onclick: () => box.close() }, "Close");
  const list = make("dl", {}, ...KEYS.flatMap(row));
  const box = make("dialog", { class: "keys", "aria-label": "Keys" }, make("h2", {}, "Keys"), list, close);
  box.addEventListener("keydown", (event) => {
    if (event.key === "?") box.close();
    event.stopPropagation();
  });
  return box;
}
