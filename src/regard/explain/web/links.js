// Two rows of tokens and ribbons between them, as wide as the weight. Where two rows are too wide, two columns.

import { asToken, draw, make, token, whenSized } from "./element.js";
import { unpacked } from "./matrix.js";
import { four } from "./number.js";

const FAINT = 0.02; // of all ribbons; one token shows those down to a tenth of it
const GAP = 130;
const WIDEST = 30; // pixels of a weight of 1
const SPOKEN = 5;

/** The body of a panel of links. */
export function drawLinks(panel) {
  return new Ribbons(panel).element;
}

class Ribbons {
  constructor(panel) {
    this.panel = panel;
    this.weights = unpacked(panel.weights);
    this.aligned = new Set((panel.pairs ?? []).map(([lower, upper]) => `${lower} ${upper}`));
    this.pinned = null;
    this.sides = { upper: this.side("upper"), lower: this.side("lower") };
    this.picture = draw("svg", { "aria-hidden": "true" });
    this.live = make("p", { class: "spoken", role: "status" });
    const [upper, lower] = [this.sides.upper.list, this.sides.lower.list];
    this.box = make("div", { class: "ribbons" }, upper, this.picture, lower);
    this.element = make("div", { class: "links" }, this.box, this.caption(), this.live);
    whenSized(this.element, (width) => this.arrange(width));
  }

  side(name) {
    const buttons = this.panel[name].map((text, place) => {
      const share = make("small", { class: "share" });
      const button = make("button", { type: "button", "aria-pressed": "false" }, token(text), share);
      const at = { side: name, place };
      button.addEventListener("pointerenter", () => this.show(at));
      button.addEventListener("focus", () => this.show(at, true));
      button.addEventListener("pointerleave", () => this.show(this.pinned));
      button.addEventListener("blur", () => this.show(this.pinned));
      button.addEventListener("click", () => this.pin(at));
      return { button, share };
    });
    const label = this.panel[`${name}_name`] || name;
    const group = make("div", { class: `tokens ${name}`, role: "group", "aria-label": label });
    group.append(make("span", { class: "side-name" }, label), ...buttons.map(({ button }) => button));
    return { list: group, buttons };
  }

  caption() {
    const marked = this.aligned.size ? [make("i", { class: "swatch aligned" }), " Aligned. "] : [];
    const told = `A ribbon is as wide as its weight; those below ${FAINT} are shown only for one token.`;
    return make("p", { class: "unit" }, ...marked, told);
  }

  /** Two rows where they fit, else two columns. */
  arrange(width) {
    this.box.classList.remove("upright");
    const isWide = [this.sides.upper.list, this.sides.lower.list].some((list) => list.scrollWidth > width + 1);
    this.isUpright = isWide;
    this.box.classList.toggle("upright", isWide);
    this.measure();
    this.show(this.pinned);
  }

  /** Where every token begins and ends along its side. */
  measure() {
    const frame = this.box.getBoundingClientRect();
    const along = ({ button }) => {
      const box = button.getBoundingClientRect();
      if (this.isUpright) return [box.top - frame.top, box.bottom - frame.top];
      return [box.left - frame.left, box.right - frame.left];
    };
    this.places = { upper: this.sides.upper.buttons.map(along), lower: this.sides.lower.buttons.map(along) };
    const length = this.isUpright ? frame.height : this.box.scrollWidth;
    const size = this.isUpright ? [GAP, length] : [length, GAP];
    this.picture.setAttribute("viewBox", `0 0 ${size.join(" ")}`);
    this.picture.setAttribute("width", size[0]);
    this.picture.setAttribute("height", size[1]);
  }

  pin(at) {
    const isSame = this.pinned?.side === at.side && this.pinned?.place === at.place;
    this.pinned = isSame ? null : at;
    this.show(this.pinned, true);
  }

  /** The ribbons of one token, or all of them. */
  show(at, speaks = false) {
    if (!this.places) return;
    const ribbons = this.stacked(at === null ? this.ribbons(FAINT) : this.ribbons(FAINT / 10, at));
    this.picture.replaceChildren(...ribbons.map((ribbon) => this.ribbon(ribbon, at !== null)));
    for (const [name, { buttons }] of Object.entries(this.sides)) {
      buttons.forEach(({ button, share }, place) => {
        const isIt = at?.side === name && at?.place === place;
        button.setAttribute("aria-pressed", String(this.pinned?.side === name && this.pinned?.place === place));
        button.classList.toggle("is-shown", isIt);
        const weight = at === null || at.side === name ? null : this.weight(at, place);
        share.textContent = weight === null || !(weight >= FAINT / 10) ? "" : four(Number(weight.toPrecision(2)));
        button.classList.toggle("is-faint", weight !== null && !(weight >= FAINT / 10));
      });
    }
    if (speaks && at !== null) this.live.textContent = this.spoken(at);
  }

  weight({ side, place }, other) {
    return side === "lower" ? this.weights.row(place)[other] : this.weights.row(other)[place];
  }

  /** What is heavy enough to be drawn, of all tokens or of the one at a place. */
  ribbons(least, at = null) {
    const found = [];
    for (let lower = 0; lower < this.weights.rows; lower += 1) {
      this.weights.row(lower).forEach((weight, upper) => {
        const isOf = at === null || (at.side === "lower" ? lower : upper) === at.place;
        if (isOf && weight >= least) found.push({ lower, upper, weight });
      });
    }
    return found;
  }

  /** Ribbons side by side at both ends, narrower where a token gets more than fits. */
  stacked(ribbons) {
    for (const side of ["lower", "upper"]) {
      const totals = new Map();
      for (const ribbon of ribbons) totals.set(ribbon[side], (totals.get(ribbon[side]) ?? 0) + ribbon.weight);
      const filled = new Map();
      for (const ribbon of ribbons) {
        const place = ribbon[side];
        const [begin, end] = this.places[side][place];
        const total = totals.get(place);
        const unit = Math.min(WIDEST, (end - begin - 4) / Math.max(1, total));
        const before = filled.get(place) ?? 0;
        const start = (begin + end) / 2 - (total * unit) / 2 + before * unit;
        ribbon[`${side}End`] = [start, start + ribbon.weight * unit];
        filled.set(place, before + ribbon.weight);
      }
    }
    return ribbons;
  }

  ribbon({ lower, upper, lowerEnd, upperEnd }, isStrong) {
    const [a, b] = upperEnd;
    const [c, d] = lowerEnd;
    const half = GAP / 2;
    const order = (along, across) => (this.isUpright ? [across, along] : [along, across]);
    const point = (...place) => order(...place).map((x) => x.toFixed(1)).join();
    const down = `C${point(b, half)} ${point(d, half)} ${point(d, GAP)}`;
    const up = `C${point(c, half)} ${point(a, half)} ${point(a, 0)}`;
    const path = `M${point(a, 0)}L${point(b, 0)}${down}L${point(c, GAP)}${up}Z`;
    const kind = this.aligned.has(`${lower} ${upper}`) ? "ribbon aligned" : "ribbon";
    return draw("path", { d: path, class: isStrong ? `${kind} is-strong` : kind });
  }

  spoken(at) {
    const other = at.side === "lower" ? this.panel.upper : this.panel.lower;
    const told = other
      .map((text, place) => ({ text, weight: this.weight(at, place) }))
      .filter(({ weight }) => weight > 0)
      .sort((a, b) => b.weight - a.weight)
      .slice(0, SPOKEN)
      .map(({ text, weight }) => `${asToken(text)} ${four(weight)}`);
    return `${asToken(this.panel[at.side][at.place])}: ${told.join(", ")}`;
  }
}
