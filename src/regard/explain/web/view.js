// A view: its title, what it is of, its panels, and what it does not prove.

import { drawBars } from "./bars.js";
import { drawCurves } from "./curves.js";
import { make, visible } from "./element.js";
import { drawFlow } from "./flow.js";
import { drawHeat } from "./heat.js";
import { drawLinks } from "./links.js";
import { drawListing } from "./listing.js";
import { drawNote } from "./note.js";
import { four } from "./number.js";
import { drawNumbers } from "./numbers.js";
import { drawOverlay } from "./overlay.js";
import { playerOf } from "./player.js";
import { drawThumbnails } from "./thumbnails.js";

const FEW = 5; // columns of a matrix
const SHORT = 12; // bars
const MEANINGS = {
  pharaoh: "Which word of the source goes with which of the target: pairs of their numbers, counted from 0, as tools for alignments write them",
};
const KINDS = {
  bars: drawBars,
  curves: drawCurves,
  flow: drawFlow,
  heat: drawHeat,
  links: drawLinks,
  listing: drawListing,
  note: drawNote,
  numbers: drawNumbers,
  overlay: drawOverlay,
  thumbnails: drawThumbnails,
};

/**
 * A view as an element.
 * memory    an object that keeps what the reader chose when the view is drawn again with other numbers.
 * exactRows asks for rows (panel, first, count) of a map in full, where somebody can answer; of: which map of a panel.
 * onask     is called with another question, a view and its options, where somebody can answer.
 */
export function drawView(view, { memory = {}, exactRows = null, onask = null } = {}) {
  // Where the view itself can be had without the sink, a map does not offer the same once more.
  const hidesSink = !(view.controls ?? []).some(({ name }) => name === "hide_sink");
  const panels = view.panels.map((panel, place) => {
    const name = panel.key || `${panel.kind} ${place}`;
    const exact = exactRows && ((first, count, of) => exactRows(place, first, count, of));
    return drawPanel(panel, { memory: (memory[name] ??= {}), exactRows: exact, hidesSink, onask });
  });
  memory.player ??= {};
  return make(
    "article",
    { class: "view", "aria-label": view.title },
    make("header", {}, make("h2", { dir: "auto" }, view.title), about(view.about)),
    view.view === "steps" ? playerOf(panels, memory.player) : make("div", { class: "panels" }, ...panels),
    view.caveat ? make("p", { class: "caveat" }, view.caveat) : null,
  );
}

function drawPanel(panel, given) {
  const body = KINDS[panel.kind];
  const content = body ? body(panel, given) : make("p", {}, `This page cannot show a panel of the kind ${panel.kind}.`);
  return make(
    "section",
    { class: `panel ${panel.kind}-panel${isSmall(panel) ? " small" : ""}`, "aria-label": panel.title || panel.kind },
    panel.title ? make("h3", { dir: "auto" }, panel.title) : null,
    content,
    panel.note ? make("p", { class: "below", dir: "auto" }, panel.note) : null,
  );
}

/** Whether two such panels may stand side by side. */
function isSmall({ kind, values, names }) {
  if (kind === "numbers") return (values ?? []).every((row) => row.length <= FEW);
  return kind === "curves" || (kind === "bars" && names.length <= SHORT);
}

/** What a view is of; lists and tables among it are for programs. */
function about(facts = {}) {
  const told = Object.entries(facts).filter(([, value]) => value !== "" && typeof value !== "object");
  if (!told.length) return null;
  const pair = ([name, value]) => {
    const isNumber = typeof value === "number";
    const text = isNumber ? four(value) : visible(value);
    const title = MEANINGS[name] ?? (isNumber ? String(value) : null);
    return make("div", { title }, make("dt", {}, name.replaceAll("_", " ")), make("dd", { dir: "auto" }, text));
  };
  return make("dl", { class: "about" }, ...told.map(pair));
}
