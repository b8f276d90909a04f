// A lecture that was sat: as a page to scroll through, and as screens for those who show it.

import { drawCode } from "./code.js";
import { Controls } from "./controls.js";
import { freshName, make } from "./element.js";
import { icon } from "./icon.js";
import { built, svgOf } from "./markup.js";
import { tell, whenTold } from "./shared.js";
import { drawView } from "./view.js";

const KINDS = {
  experiment: "experiment",
  picture: "picture",
  exercise: "exercise",
  claim: "claim",
  statements: "what was said",
};

/**
 * A lecture as an element: contents, then every screen.
 * askView(place, values)  asks for a view with other values of its controls, where somebody can answer; null elsewhere.
 * onshow(number)          shows a screen large, where that can be done.
 */
export function drawLecture(sitting, { askView = null, onshow = null } = {}) {
  const screens = screensOf(sitting, { askView }).map((screen, number) => section(screen, number, onshow));
  const link = ({ title, id }) => make("li", {}, make("a", { href: `#${id}`, onclick: jump(id) }, title));
  const contents = make("nav", { class: "contents", "aria-label": "Contents" }, make("ol", {}, ...screens.map(link)));
  return make(
    "article",
    { class: "lecture", "aria-label": sitting.title },
    make("header", {}, make("h1", { dir: "auto" }, sitting.title)),
    screens[0]?.element,
    contents,
    ...screens.slice(1).map(({ element }) => element),
  );
}

/**
 * The screens of a lecture: title, kind, notes, and draw(), which gives the elements of its cells.
 * What is drawn is drawn once, so that what a reader has opened stays open.
 */
export function screensOf(sitting, { askView = null } = {}) {
  return sitting.screens.map((screen, number) => {
    let drawn = null;
    const cell = (one, place) => cellOf(one, askView && ((output, values) => askView([number, place, output], values)));
    const draw = () => (drawn ??= make("div", { class: "cells" }, ...grouped(screen.cells, cell)));
    return { title: screen.title, kind: screen.kind, notes: screen.notes, draw };
  });
}

/** A screen of the page. The first has the title of the lecture, which stands above it. */
function section(screen, number, onshow) {
  const id = freshName("screen");
  const badge = screen.kind in KINDS ? make("span", { class: `kind ${screen.kind}` }, KINDS[screen.kind]) : null;
  const given = { type: "button", class: "large", title: "Show this screen large", onclick: () => onshow(number) };
  const large = onshow ? make("button", { ...given, "aria-label": `Show large: ${screen.title}` }, icon("large")) : null;
  const head = number === 0 ? null : make("header", {}, make("h2", { dir: "auto" }, screen.title), badge, large);
  return { id, title: screen.title, element: make("section", { class: "screen", id }, head, screen.draw()) };
}

/** The address belongs to the place that is shown, so that the jump is made by hand. */
function jump(id) {
  return (event) => {
    event.preventDefault();
    document.getElementById(id).scrollIntoView();
  };
}

/** Cells of a solution that follow each other lie behind one click. */
function grouped(cells, draw) {
  const parts = [];
  let solution = null;
  cells.forEach((cell, place) => {
    const element = draw(cell, place);
    if (!cell.is_solution) solution = null;
    else if (solution === null) parts.push((solution = hidden(element)));
    else solution.append(element);
    if (!cell.is_solution) parts.push(element);
  });
  return parts;
}

function hidden(element) {
  const details = make("details", { class: "solution" }, make("summary", {}, "Solution"), element);
  let isTold = false; // by another window, which knows
  details.addEventListener("toggle", () => {
    if (!isTold) tell(details, { open: details.open });
    isTold = false;
  });
  whenTold(details, ({ open }) => {
    isTold = details.open !== open;
    details.open = open;
  });
  return details;
}

function cellOf(cell, askView) {
  if (cell.prose) return make("div", { class: "prose", dir: "auto" }, ...built(cell.prose));
  const outputs = (cell.outputs ?? []).map((output, number) =>
    outputOf(output, askView && ((values) => askView(number, values))),
  );
  return make("div", { class: "cell" }, drawCode(cell.code), ...outputs);
}

function outputOf({ kind, view, text, svg }, askView) {
  if (kind === "view") return viewOf(view, askView);
  if (kind === "svg") return make("figure", { class: "drawing" }, svgOf(svg) ?? make("p", {}, "This is no picture."));
  const name = kind === "error" ? "printed failure" : "printed";
  return make("pre", { class: name, tabindex: 0, "aria-label": kind === "error" ? "Error" : "Output" }, text);
}

/** A view; with its controls where somebody answers them. */
function viewOf(view, askView) {
  if (!askView || !view.controls?.length) return drawView({ ...view, controls: [] });
  const memory = {};
  const shown = make("div");
  const failure = make("p", { class: "failure", role: "alert", hidden: true });
  const chosen = {};
  let asked = 0;
  const show = (made) => {
    controls.show(made.controls ?? []);
    shown.replaceChildren(drawView(made, { memory }));
  };
  const turn = async (values) => {
    const number = (asked += 1);
    Object.assign(chosen, values);
    try {
      const made = await askView({ ...chosen });
      if (number !== asked) return; // another value was chosen meanwhile
      failure.hidden = true;
      show(made);
    } catch (error) {
      if (number !== asked) return;
      failure.textContent = error.message;
      failure.hidden = false;
    }
  };
  const controls = new Controls((values) => {
    tell(element, values);
    turn(values);
  });
  const element = make("div", { class: "playable" }, controls.element, failure, shown);
  whenTold(element, turn);
  show(view);
  return element;
}
