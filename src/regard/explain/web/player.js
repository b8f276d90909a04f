// Panels one after the other. Panels out of sight stay as they are, so that nothing chosen in one is lost.

import { make } from "./element.js";
import { tell, whenTold } from "./shared.js";

const OTHERS = "input, select, textarea, [role=application]";

/** The player of a list of panels. memory: the step it was at, and whether all were shown. */
export function playerOf(panels, memory) {
  memory.step = Math.min(memory.step ?? 0, panels.length - 1);
  const where = make("span", { class: "where", role: "status" });
  const button = (label, act, given = {}) => make("button", { type: "button", onclick: act, ...given }, label);
  const previous = button("← Previous", () => go(memory.step - 1), { "data-step": "previous" });
  const next = button("Next →", () => go(memory.step + 1), { "data-step": "next" });
  const all = button("All", () => turn({ showsAll: !memory.showsAll }));
  const dots = panels.map((panel, place) => {
    const label = `Step ${place + 1}: ${panel.getAttribute("aria-label")}`;
    const given = { type: "button", class: "dot", title: label, "aria-label": label };
    return make("button", { ...given, onclick: () => go(place) });
  });
  const show = (change) => {
    Object.assign(memory, change);
    panels.forEach((panel, place) => {
      const isCurrent = place === memory.step && !memory.showsAll;
      panel.hidden = !memory.showsAll && !isCurrent;
      dots[place].setAttribute("aria-current", isCurrent ? "step" : "false");
    });
    element.classList.toggle("shows-all", Boolean(memory.showsAll));
    where.textContent = memory.showsAll ? `all ${panels.length} steps` : `step ${memory.step + 1} of ${panels.length}`;
    all.setAttribute("aria-pressed", String(Boolean(memory.showsAll)));
    previous.disabled = !memory.showsAll && memory.step === 0;
    next.disabled = !memory.showsAll && memory.step === panels.length - 1;
  };
  const turn = (change) => {
    show(change);
    tell(element, { step: memory.step, showsAll: Boolean(memory.showsAll) });
  };
  const go = (step) => {
    if (step >= 0 && step < panels.length) turn({ step, showsAll: false });
  };
  const bar = make("div", { class: "steps-bar", role: "group", "aria-label": "Steps" }, previous, where, next, all);
  const parts = [bar, make("div", { class: "dots" }, ...dots), make("div", { class: "panels" }, ...panels)];
  const element = make("div", { class: "player" }, ...parts);
  listen(element, (step) => go(memory.step + step));
  whenTold(element, show);
  show({});
  return element;
}

/** Arrow keys anywhere in the player, and on the page when it has one player and nothing else is in use. */
function listen(player, move) {
  const press = (event) => {
    if (!player.isConnected) {
      document.removeEventListener("keydown", press);
      return;
    }
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const { target } = event;
    if (!step || event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const isOurs = player.contains(target) && !target.closest(OTHERS);
    const isFree = target === document.body && document.querySelectorAll(".player").length === 1;
    if (isOurs || isFree) {
      move(step);
      event.preventDefault();
    }
  };
  // A view that is drawn before it is put on the page would seem to have left it.
  requestAnimationFrame(() => document.addEventListener("keydown", press));
}
