// What can be shown large: the screens of a lecture, or the panels of a view.

import { make } from "./element.js";
import { screensOf } from "./lecture.js";
import { drawView } from "./view.js";

/** The screens of a lecture. */
export function deckOfLecture(sitting, given = {}) {
  return { title: sitting.title, screens: screensOf(sitting, given) };
}

/**
 * The panels of a view, each a screen.
 * controls  the element in which the view is asked for otherwise; it is lent to the show.
 */
export function deckOfView(view, { controls = null, ...given } = {}) {
  const drawn = drawView(view, given);
  const panels = [...drawn.querySelectorAll(".panels > .panel")];
  // Of a worked example there is nothing to say that is not in its title.
  const facts = view.about?.example ? null : drawn.querySelector(":scope > header > .about");
  const caveat = drawn.querySelector(":scope > .caveat");
  const screens = panels.map((panel, number) => {
    const isLast = number === panels.length - 1;
    panel.hidden = false; // one of a player was out of sight
    const element = make("article", { class: "view" }, make("div", { class: "panels" }, panel), isLast ? caveat : null);
    const title = panel.getAttribute("aria-label");
    return { title, heading: view.title, notes: isLast ? "" : view.caveat, draw: () => element };
  });
  return { title: view.title, screens, facts, controls };
}
