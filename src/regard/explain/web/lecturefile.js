// A lecture as a file that opens from disk: its sitting is in it.

import { deckOfLecture } from "./deck.js";
import { make } from "./element.js";
import { drawLecture } from "./lecture.js";
import { Show } from "./present.js";

/** Draws the lecture that the file holds; `p` or a button shows it large. */
export function start() {
  const sitting = JSON.parse(document.getElementById("regard-sitting").textContent);
  const root = document.getElementById("regard");
  const addressed = new URLSearchParams(location.hash.slice(1));
  const place = (number, speaker) => {
    const told = { screen: number + 1, ...(speaker ? { speaker } : {}) };
    return `${location.href.split("#")[0]}#${new URLSearchParams(told)}`;
  };
  const draw = () => root.replaceChildren(open, drawLecture(sitting, { onshow: (number) => present(number) }));
  const present = (number, speaker = null) => {
    root.hidden = true;
    show.open(deckOfLecture(sitting), number, speaker);
  };
  const show = new Show({
    where: () => sitting.name,
    address: place,
    onmove: (number) => history.replaceState(null, "", place(number, addressed.get("speaker"))),
    onleave: () => {
      history.replaceState(null, "", location.href.split("#")[0]);
      root.hidden = false;
    },
  });
  const open = make("button", { type: "button", class: "present", onclick: () => present(0) }, "Show large (p)");
  document.addEventListener("keydown", ({ key, target }) => {
    const isTyping = target instanceof Element && target.closest("input, select, textarea");
    if (key === "p" && !show.isOpen && !isTyping) present(0);
  });
  draw();
  if (addressed.has("screen")) present(Number(addressed.get("screen")) - 1 || 0, addressed.get("speaker"));
}
