// The widget of a notebook: a view, and controls that the notebook's kernel answers.

import { isDark } from "./colour.js";
import { Controls } from "./controls.js";
import { make } from "./element.js";
import { drawView } from "./view.js";

/** Draws a widget, as anywidget calls it. */
export function render({ model, el }) {
  const memory = {};
  const failure = make("p", { class: "failure", role: "alert" });
  const place = make("div");
  // What was chosen before goes along: the kernel may have refused it for want of what is chosen now.
  const chosen = {};
  let asked = 0;
  const controls = new Controls((values) => {
    asked += 1;
    model.set("asked", { number: asked, values: { ...Object.assign(chosen, values) } });
    model.save_changes();
  });
  // A notebook has a theme of its own, whatever the reader's system prefers. The cell may not be on the page yet.
  const theme = isDark(el.isConnected ? el : document.body) ? "dark" : "light";
  const root = make("div", { class: "regard", "data-theme": theme }, controls.element, failure, place);
  const show = () => {
    const view = model.get("view");
    controls.show(view.controls ?? []);
    place.replaceChildren(drawView(view, { memory }));
  };
  const warn = () => {
    failure.textContent = model.get("failure");
    failure.hidden = !failure.textContent;
  };
  el.append(root);
  show();
  warn();
  model.on("change:view", show);
  model.on("change:failure", warn);
  return () => {
    model.off("change:view", show);
    model.off("change:failure", warn);
  };
}
