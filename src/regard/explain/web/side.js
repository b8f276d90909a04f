// The list of runs and worked examples, and the two ways to look at runs: inside one, or along their training.

import { addressOf } from "./address.js";
import { make, visible } from "./element.js";
import { RunList, comparable } from "./runs.js";

/**
 * Both lists. looks: the colours of runs. oncurves(names) is called when other runs are to be shown beside each other,
 * onagain() when the reader wants to know of new ones.
 */
export class Side {
  constructor(looks, oncurves, onagain) {
    this.beside = new RunList(looks, oncurves);
    const again = { type: "button", class: "again", title: "Look for new runs", "aria-label": "Look for new runs" };
    this.again = make("button", { ...again, onclick: onagain }, "↻");
    this.tabs = {
      inside: make("a", { href: "#", class: "tab" }, "Look inside"),
      curves: make("a", { class: "tab" }, "Learning curves"),
      lectures: make("a", { class: "tab", href: addressOf({ lecture: "" }) }, "Lectures"),
    };
    const tabs = make("nav", { "aria-label": "Pages", class: "tabs" }, ...Object.values(this.tabs));
    this.links = make("div", { class: "links-of-side" });
    const skip = make("a", { href: "#main", class: "skip", onclick: skipTo }, "Skip to the view");
    const brand = make("strong", { class: "brand" }, "regard", make("span", {}, " lab"));
    this.parts = [
      make("header", { class: "top" }, skip, brand, tabs),
      make("nav", { class: "list", "aria-label": "Runs and examples" }, this.links),
    ];
  }

  list(runs, examples, lectures) {
    this.tabs.curves.href = addressOf({ curves: comparable(runs) });
    this.beside.list(runs);
    this.marks = [];
    const run = (one) => this.entry({ run: one.name }, one.label, one.error ?? `${one.model}, ${one.task}`, one.error);
    const example = ([name, about]) => this.entry({ example: name }, name, about);
    this.inside = make("ul", { class: "runs" }, ...runs.map(run));
    this.none = runs.length ? make("span") : make("p", { class: "unit" }, "none here: regard train my.txt --out runs/first");
    const worked = make("ul", {}, ...Object.entries(examples).map(example));
    this.worked = make("div", {}, make("h2", {}, "Worked examples"), worked);
    const lecture = ({ name, number, title, question }) => this.entry({ lecture: name }, `${number} ${title}`, question);
    this.taught = make("div", {}, make("h2", {}, "Lectures"), make("ul", {}, ...lectures.map(lecture)));
    const focus = document.activeElement;
    const { scrollTop } = this.beside.boxes;
    this.heading = make("h2", {}, "Runs", this.again);
    const parts = [this.heading, this.none, this.inside, this.beside.element, this.worked, this.taught];
    this.links.replaceChildren(...parts.filter(Boolean));
    // What is taken out for a moment loses both.
    if (this.links.contains(focus)) focus.focus();
    this.beside.boxes.scrollTop = scrollTop;
  }

  /** Marks the place that is shown. */
  mark(place) {
    const showsCurves = Boolean(place.curves);
    const showsLectures = place.lecture !== undefined;
    this.inside.hidden = this.worked.hidden = showsCurves || showsLectures;
    this.heading.hidden = this.none.hidden = showsLectures;
    this.beside.element.hidden = !showsCurves;
    this.taught.hidden = !showsLectures;
    this.beside.mark(place.curves ?? []);
    for (const { link, at } of this.marks) {
      const isIt = at.run === place.run && at.example === place.example && at.lecture === place.lecture && !showsCurves;
      link.setAttribute("aria-current", isIt ? "page" : "false");
      if (isIt) this.reveal(link);
    }
    const current = showsLectures ? "lectures" : showsCurves ? "curves" : "inside";
    if (current === "inside") this.tabs.inside.href = addressOf(place);
    for (const [name, tab] of Object.entries(this.tabs)) tab.setAttribute("aria-current", name === current ? "page" : "false");
  }

  /** Scrolls the lists alone: the page stays where the reader is. */
  reveal(link) {
    const runs = this.inside.contains(link) ? [this.inside] : [];
    for (const list of [...runs, this.links]) {
      const { top, height } = link.getBoundingClientRect();
      const { top: above, height: room } = list.getBoundingClientRect();
      if (top < above || top + height > above + room) list.scrollTop += top - above - room / 3;
    }
  }

  entry(at, name, about, error) {
    const parts = [make("span", { class: "name" }, visible(name)), make("small", {}, visible(about))];
    if (error) return make("li", { class: "broken" }, ...parts);
    const link = make("a", { href: addressOf(at) }, ...parts);
    this.marks.push({ link, at });
    return make("li", {}, link);
  }
}

/** The address belongs to the place that is shown, so that the jump is made by hand. */
function skipTo(event) {
  event.preventDefault();
  const main = document.getElementById("main");
  main.tabIndex = -1;
  main.focus();
}
