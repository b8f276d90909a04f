// A file that opens from disk: its views are in it.

import { make } from "./element.js";
import { drawView } from "./view.js";

/** Draws the views that the file holds. */
export function start() {
  const { title, views } = JSON.parse(document.getElementById("regard-views").textContent);
  const root = document.getElementById("regard");
  if (title) root.append(make("h1", { dir: "auto" }, title));
  root.append(...views.map((view) => drawView(view)));
}
