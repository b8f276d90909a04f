// Lines over an axis and bands around one of them, with the values at the place the reader points at.

import { endsOf, shareOf, ticksOf } from "./axis.js";
import { SERIES } from "./colour.js";
import { draw, letterScale, make, token, visible, whenSized } from "./element.js";
import { four, short } from "./number.js";
import { tell, whenTold } from "./shared.js";

const HEIGHT = 300;
const EDGE = { left: 68, right: 16, top: 14, bottom: 44 };
const WIDEST = 760;
const SHADE = 0.2; // of a band; one within another is darker
const LETTER = 7; // the width of one, about
const DOTS = 12; // points of a line up to which each is shown

/** The colour of the line of a number, and its dashes where colours come again. */
export function lookOf(number) {
  const round = Math.floor(number / SERIES.length);
  return { colour: SERIES[number % SERIES.length], dash: [null, "6 4", "2 3"][Math.min(2, round)] };
}

/** The body of a panel of curves. */
export function drawCurves(panel) {
  return new Chart(panel).element;
}

/** The point of a line whose x is nearest. */
function nearest(points, x) {
  return points.reduce((best, one) => (Math.abs(one[0] - x) < Math.abs(best[0] - x) ? one : best));
}

/** Lines, bands and their legend. */
export class Chart {
  constructor(panel) {
    this.hidden = new Set();
    const label = `${panel.title || "Curves"}: ${panel.y ?? ""} by ${panel.x ?? ""}. Arrow keys read values.`;
    const roles = { role: "application", "aria-roledescription": "chart", "aria-label": label };
    this.picture = draw("svg", { class: "chart", tabindex: 0, ...roles });
    this.legend = make("div", { class: "series", role: "group", "aria-label": "Lines" });
    this.live = make("p", { class: "spoken", role: "status" });
    this.element = make("div", { class: "curves" }, this.picture, this.legend, this.live);
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => this.ask(null));
    this.picture.addEventListener("keydown", (event) => this.press(event));
    whenTold(this.picture, ({ x }) => this.read(x));
    this.show(panel);
    whenSized(this.element, (width) => {
      this.scale = letterScale();
      this.paint(Math.min(width / this.scale, WIDEST));
    });
  }

  /** Shows other numbers; what the reader hid or points at stays so. */
  show(panel) {
    this.panel = panel;
    const fits = (value, isLog) => Number.isFinite(value) && (value > 0 || !isLog);
    const isFit = ([x, y]) => fits(x, panel.x_log) && fits(y, panel.y_log);
    this.lines = Object.entries(panel.lines ?? {}).map(([name, points], number) => ({
      name,
      points: points.filter(isFit),
      behind: (panel.behind?.[name] ?? []).filter(isFit),
      ...(panel.looks?.[name] ?? lookOf(number)),
      isHidden: this.hidden.has(name),
    }));
    const around = this.lines.find((line) => line.name === panel.around) ?? this.lines[0];
    this.bands = Object.entries(panel.bands ?? {}).map(([name, points], number) => ({
      name,
      points: points.filter(([x, low, high]) => isFit([x, low]) && isFit([x, high])),
      colour: around?.colour ?? SERIES[0],
      depth: number + 1,
      isBand: true,
      isHidden: this.hidden.has(name),
    }));
    const everything = [...this.lines, ...this.bands];
    const told = JSON.stringify(everything.map(({ name, colour, dash }) => [name, colour, dash]));
    if (told !== this.told) this.legend.replaceChildren(...everything.map((line) => this.key(line)));
    else everything.forEach((line, place) => (line.value = this.legend.children[place].lastChild));
    this.told = told;
    if (this.width) this.paint(this.width);
  }

  /** The name of a line, its value where the reader points, and a switch. */
  key(line) {
    const swatch = draw("svg", { width: 22, height: 8, "aria-hidden": "true" });
    const look = { stroke: line.colour, "stroke-width": 3, "stroke-dasharray": line.dash };
    const shade = { fill: line.colour, "fill-opacity": 1 - (1 - SHADE) ** line.depth, width: 22, height: 8 };
    swatch.append(line.isBand ? draw("rect", shade) : draw("path", { d: "M0 4H22", ...look }));
    line.value = make("span", { class: "number" });
    const press = () => {
      if (!this.hidden.delete(line.name)) this.hidden.add(line.name);
      for (const one of [...this.lines, ...this.bands]) one.isHidden = this.hidden.has(one.name);
      button.setAttribute("aria-pressed", String(!this.hidden.has(line.name)));
      if (this.width) this.paint(this.width);
    };
    const given = { type: "button", "aria-pressed": String(!line.isHidden), onclick: press };
    const button = make("button", given, swatch, token(line.name), line.value);
    return button;
  }

  get shown() {
    return this.lines.filter((line) => !line.isHidden && line.points.length);
  }

  get areas() {
    return this.bands.filter((band) => !band.isHidden && band.points.length);
  }

  /** A value of x in words. */
  named(x) {
    return this.panel.x_names?.[Math.round(x)] ?? short(x);
  }

  paint(width) {
    const at = this.at ?? null;
    this.width = width;
    const edges = this.areas.flatMap((band) => band.points.flatMap(([x, low, high]) => [[x, low], [x, high]]));
    const points = [...this.shown.flatMap((line) => [...line.points, ...line.behind]), ...edges];
    const { x_log: xLog, y_log: yLog } = this.panel;
    this.ends = { x: endsOf(points.map(([x]) => x), xLog), y: endsOf(points.map(([, y]) => y), yLog) };
    const paths = [...this.areas.map((band) => this.area(band)), ...this.shown.map((line) => this.line(line))];
    this.cross = draw("g", { class: "cross" });
    this.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.picture.setAttribute("width", width * this.scale);
    this.picture.setAttribute("height", HEIGHT * this.scale);
    this.picture.replaceChildren(this.frame(), ...paths, this.cross);
    this.read(this.stops().includes(at) ? at : null);
  }

  place([x, y]) {
    const across = this.width - EDGE.left - EDGE.right;
    const down = HEIGHT - EDGE.top - EDGE.bottom;
    return [
      EDGE.left + across * shareOf(x, this.ends.x, this.panel.x_log),
      HEIGHT - EDGE.bottom - down * shareOf(y, this.ends.y, this.panel.y_log),
    ];
  }

  frame() {
    const parts = draw("g", { class: "frame" });
    const write = (x, y, anchor, text) => parts.append(draw("text", { x, y, "text-anchor": anchor }, text));
    const ticks = this.panel.x_ticks ?? ticksOf(this.ends.x, this.panel.x_log).map((value) => [value, short(value)]);
    let free = -Infinity; // words that would touch those before them are left out
    for (const [value, words] of ticks) {
      const [x] = this.place([value, this.ends.y[0]]);
      parts.append(draw("path", { d: `M${x} ${EDGE.top}V${HEIGHT - EDGE.bottom}` }));
      const half = (words.length * LETTER) / 2;
      if (x - half < free) continue;
      free = x + half + LETTER;
      write(x, HEIGHT - EDGE.bottom + 17, "middle", words);
    }
    for (const value of ticksOf(this.ends.y, this.panel.y_log)) {
      const [, y] = this.place([this.ends.x[0], value]);
      parts.append(draw("path", { d: `M${EDGE.left} ${y}H${this.width - EDGE.right}` }));
      write(EDGE.left - 7, y + 4, "end", short(value));
    }
    write((EDGE.left + this.width - EDGE.right) / 2, HEIGHT - 6, "middle", this.panel.x ?? "");
    const middle = (HEIGHT - EDGE.bottom + EDGE.top) / 2;
    const turned = { transform: `translate(13 ${middle}) rotate(-90)`, "text-anchor": "middle" };
    parts.append(draw("text", turned, this.panel.y ?? ""));
    return parts;
  }

  line({ points, behind, colour, dash }) {
    const places = points.map((point) => this.place(point));
    const path = (all) => all.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    const raw = { points: path(behind.map((point) => this.place(point))), stroke: colour, class: "raw" };
    const line = draw("polyline", { points: path(places), stroke: colour, "stroke-dasharray": dash });
    const dots = places.length > DOTS ? [] : places.map(([cx, cy]) => draw("circle", { cx, cy, r: 3, fill: colour }));
    return draw("g", { class: "line" }, ...(behind.length ? [draw("polyline", raw)] : []), line, ...dots);
  }

  area({ points, colour }) {
    const edge = (side) => points.map((point) => this.place([point[0], point[side]]));
    const path = [...edge(1), ...edge(2).reverse()].map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    return draw("polygon", { class: "band", points: path, fill: colour, "fill-opacity": SHADE });
  }

  point(event) {
    if (!this.width) return;
    const box = this.picture.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const near = (value) => Math.abs(this.place([value, this.ends.y[0]])[0] - x);
    const values = this.stops();
    if (values.length) this.ask(values.reduce((best, value) => (near(value) < near(best) ? value : best)));
  }

  /** Every x at which some line has a point. */
  stops() {
    return [...new Set(this.shown.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  }

  press(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    const values = this.stops();
    if (step === undefined || !values.length) return;
    const at = this.at === null ? (step < 0 ? values.length : -1) : values.indexOf(this.at);
    this.ask(values[Math.min(values.length - 1, Math.max(0, at + step))]);
    const told = this.shown.map((line) => `${visible(line.name)} ${line.value.textContent}`);
    this.live.textContent = `${this.panel.x ?? "x"} ${this.named(this.at)}: ${told.join(", ")}`;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Reads at x, here and in a second window. */
  ask(x) {
    this.read(x);
    tell(this.picture, { x });
  }

  /** Shows what every line is at x; in the picture too, once there is room for one. */
  read(x) {
    this.at = x;
    for (const line of [...this.lines, ...this.bands]) line.value.textContent = "";
    if (x !== null) this.tellValues(x);
    if (this.width) this.drawCross(x);
  }

  tellValues(x) {
    for (const band of this.areas) {
      const point = band.points.find((one) => one[0] === x);
      if (point) band.value.textContent = `${four(point[1])} to ${four(point[2])}`;
    }
    for (const line of this.shown) line.value.textContent = four(nearest(line.points, x)[1]);
  }

  drawCross(x) {
    this.cross.replaceChildren();
    if (x === null) return;
    const [across] = this.place([x, this.ends.y[0]]);
    this.cross.append(draw("path", { d: `M${across} ${EDGE.top}V${HEIGHT - EDGE.bottom}` }));
    const isRight = across > this.width / 2;
    const place = { x: across + (isRight ? -5 : 5), y: EDGE.top + 10, "text-anchor": isRight ? "end" : "start" };
    this.cross.append(draw("text", place, this.named(x)));
    for (const line of this.shown) {
      const [cx, cy] = this.place(nearest(line.points, x));
      this.cross.append(draw("circle", { cx, cy, r: 4.5, fill: line.colour }));
    }
  }
}
