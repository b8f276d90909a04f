// A file that opens from disk: its view is in it.

import { drawView } from "./view.js";

/** Draws the view that the file holds, without its controls: nobody is there to answer them. */
export function start() {
  const view = JSON.parse(document.getElementById("regard-view").textContent);
  document.getElementById("regard").append(drawView({ ...view, controls: [] }));
}
