// Signs on buttons, drawn: not every font has them.

import { draw } from "./element.js";

const PATHS = {
  back: "M10 3 5 8l5 5",
  on: "M6 3l5 5-5 5",
  large: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
  second: "M5 5V2h9v7h-3M2 5h9v9H2z",
  leave: "M3 3l10 10M13 3 3 13",
};

/** The sign of a name. */
export function icon(name) {
  const look = { fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round" };
  const size = { viewBox: "0 0 16 16", width: 16, height: 16, class: "icon", "aria-hidden": "true" };
  return draw("svg", size, draw("path", { d: PATHS[name], ...look }));
}
