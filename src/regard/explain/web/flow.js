// The diagram of a model: the numbers of one input on their way to an answer, and everything that can be done with it.

import { Answers } from "./answers.js";
import { isDark, whenTurned } from "./colour.js";
import { asToken, freshName, make } from "./element.js";
import { Graph } from "./graph.js";
import { Inspector } from "./inspect.js";
import { arranged } from "./lanes.js";
import { four } from "./number.js";
import { Outline, toldOf } from "./outline.js";
import { Scene, mapOf, sizeAt } from "./scene.js";
import { Stage } from "./stage.js";
import { PAGE } from "./strokes.js";

const TAKES = 900; // milliseconds of a column while the animation plays
const HELP = "Drag or arrow keys move, plus and minus zoom, 0 shows the whole, full stop and comma step. The outline below the diagram has every part.";

/** The body of a panel of the kind flow. memory: what the reader chose before. exactRows: asks for numbers in full. */
export function drawFlow(panel, given = {}) {
  return new Diagram(panel, given).element;
}

class Diagram {
  constructor(panel, { memory = {}, exactRows = null }) {
    this.panel = panel;
    this.memory = memory;
    this.graph = new Graph(panel);
    const groups = [...this.graph.groups.keys()].join(); // of another model nothing is kept
    if (memory.groups === groups) [this.graph.opened, this.graph.spread] = [memory.opened, memory.spread];
    Object.assign(memory, { groups, opened: this.graph.opened, spread: this.graph.spread });
    const place = memory.of === this.labels.length ? memory.place : panel.place;
    this.state = { place, main: panel.main, chosen: null, hovered: null, column: null, share: null };
    this.scene = new Scene(this.graph, { isDark: false });
    this.inspector = new Inspector(this.graph, this.scene, panel.asks ? exactRows : null);
    this.outline = new Outline(this.graph, {
      onpick: (name, isGroup) => this.pickName(name, isGroup),
      told: (node) => toldOf(node, sizeAt(node, this.state.place, panel.main)),
    });
    this.build();
    this.recolour();
    this.answers.show(this.state.place);
    this.arrange(true);
    whenTurned(this.element, () => this.recolour());
  }

  get labels() {
    return this.panel.sides[this.panel.main] ?? [];
  }

  build() {
    this.stage = new Stage(`${this.panel.title}. ${HELP}`, {
      paint: (context, size, look) => this.paint(context, size, look),
      onpoint: (place, event) => this.point(place, event),
      onpick: (place) => this.pick(place),
      onkey: (key) => this.key(key),
    });
    this.tip = make("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.live = make("p", { class: "spoken", role: "status" });
    this.caption = make("p", { class: "unit caption" });
    this.answers = new Answers(this.panel.answers, () => this.stage.repaint());
    this.element = make(
      "div",
      { class: "flow" },
      make("div", { class: "bar-of-tools" }, ...this.tools()),
      make("div", { class: "stage-room" }, this.stage.canvas, this.tip),
      this.caption,
      this.live,
      make("div", { class: "beside" }, this.inspector.element, this.answers.element),
      this.outline.element,
    );
    this.inspector.element.append(make("p", { class: "hint" }, "Choose a box to read its numbers; a stack of sheets opens."));
  }

  tools() {
    const button = (label, title, act) => make("button", { type: "button", title, "aria-label": title, onclick: act }, label);
    this.playing = button("▶ play", "Play the way of the numbers", () => this.play());
    const group = (label, ...parts) => make("span", { class: "zooms", role: "group", "aria-label": label }, ...parts);
    return [
      this.positions(),
      group(
        "Steps",
        this.playing,
        button("‹", "A step back", () => this.step(-1)),
        button("›", "A step on", () => this.step(1)),
        button("all", "All at once", () => this.stop()),
      ),
      group(
        "Zoom",
        button("−", "Smaller", () => this.stage.zoom(0.8)),
        button("+", "Larger", () => this.stage.zoom(1.25)),
        button("whole", "The whole diagram", () => this.stage.fit()),
        button("fold", "As it was at first", () => this.fold()),
      ),
    ];
  }

  positions() {
    const pick = (event) => this.go(Number(event.target.value));
    this.select = make("select", { id: freshName("place"), onchange: pick });
    this.labels.forEach((label, place) => {
      const text = `${place + (this.panel.first ?? 1)}: ${asToken(label)}`;
      this.select.append(make("option", { value: place, selected: place === this.state.place }, text));
    });
    return make("label", { for: this.select.id }, "position ", this.select);
  }

  /** Looks at another position. */
  go(place) {
    this.state.place = place;
    Object.assign(this.memory, { place, of: this.labels.length });
    this.select.value = String(place);
    this.answers.show(this.state.place);
    this.choose(this.state.chosen);
    this.stage.repaint();
  }

  fold() {
    this.graph.begin();
    this.stop();
    this.arrange(true);
  }

  /** Finds out anew what is seen and where it stands. */
  arrange(isNew = false) {
    this.shown = this.graph.seen();
    this.whole = arranged(this.shown, this.panel);
    const { chosen } = this.state;
    if (chosen) this.state.chosen = this.shown.boxes.find(({ name }) => name === chosen.name) ?? null;
    this.explain();
    this.outline.show(this.state.chosen?.name);
    this.stage.hold(this.whole, isNew);
  }

  recolour() {
    const at = this.element.isConnected ? this.element : document.body;
    const dark = isDark(at);
    this.scene.turn({ isDark: dark, ...PAGE[dark ? "dark" : "light"] });
    this.stage.repaint();
  }

  paint(context, size, look) {
    if (!this.wasPlaced) {
      this.wasPlaced = true;
      this.recolour(); // only on the page is it known whether that is dark
    }
    this.scene.paint(context, size, look, this.shown, { ...this.state, told: this.answers.told });
  }

  /** What a ribbon and its width stand for. */
  explain() {
    const most = this.scene.largest(this.shown.ribbons, this.state);
    const told = Object.entries(most).filter(([, size]) => size > 0).map(([measure, size]) => `${measure} up to ${four(Number(size.toPrecision(3)))}`);
    const back = this.shown.ribbons.some(({ isBack }) => isBack) ? " Dashed: from the step before." : "";
    this.caption.textContent = `A ribbon is as wide as what it carries at the position is large: ${told.join(", ")}.${back}`;
  }

  boxAt([x, y]) {
    const isIn = (one) => x >= one.x && x <= one.x + one.width && y >= one.y && y <= one.y + one.height;
    const box = this.shown.boxes.find(isIn);
    if (box) return box;
    const frames = this.shown.frames.filter((frame) => isIn(frame) && y <= frame.y + 22 && x <= frame.x + 160);
    return frames.length ? { ...frames.at(-1), isFrame: true, kind: "group" } : null;
  }

  point(place, event) {
    const box = place && this.boxAt(place);
    if (box?.name !== this.state.hovered?.name) this.stage.repaint();
    this.state.hovered = box;
    this.stage.canvas.style.cursor = box ? "pointer" : "grab";
    this.tip.hidden = !box || box.isFrame;
    if (this.tip.hidden) return;
    this.tip.textContent = this.tell(box, place);
    const [x, y] = this.stage.spot(event);
    const room = this.stage.size.width - 230;
    Object.assign(this.tip.style, { left: `${Math.min(x + 14, room)}px`, top: `${y + 16}px` });
  }

  /** What is said of a box under the pointer: of a map the number there. */
  tell(box, [x, y]) {
    if (box.kind !== "node") return `${box.label}: ${box.numbers.length} parts. Click to open.`;
    const said = toldOf(box.node, sizeAt(box.node, this.state.place, this.panel.main));
    const map = mapOf(box);
    const matrix = this.scene.matrix(box.node);
    const [across, down] = [(x - map.x) / map.width, (y - map.y) / map.height];
    if (!matrix || across < 0 || across >= 1 || down < 0 || down >= 1) return said;
    const { name, value } = this.scene.cell(box.node, matrix, down, across);
    return `${said}\n${name}: ${four(value)}`;
  }

  pick(place) {
    const box = this.boxAt(place);
    if (!box) return;
    if (box.kind !== "node") {
      this.graph.turn(box);
      this.arrange();
      this.live.textContent = `${box.label}, ${this.graph.opened.has(box.name) ? "open" : "closed"}`;
      return;
    }
    const row = this.scene.rowAt(box, place[1], this.state);
    if (row !== null) this.go(row);
    this.choose(box);
    this.stage.repaint();
  }

  pickName(name, isGroup) {
    if (isGroup) {
      this.graph.turn({ kind: "group", name });
      this.arrange();
      this.outline.show(name);
      return;
    }
    this.show(this.graph.nodes.find((node) => node.name === name).number);
  }

  /** Chooses a node wherever it is. */
  show(number) {
    this.graph.reveal(number);
    this.arrange();
    const box = this.shown.of.get(number);
    this.choose(box);
    this.stage.reveal(box);
  }

  choose(box) {
    this.state.chosen = box;
    if (!box || box.kind !== "node") return;
    const { place, main } = this.state;
    this.inspector.show(box.node, { place, main, go: (number) => this.show(number) });
    this.outline.show(box.name);
    this.live.textContent = toldOf(box.node, sizeAt(box.node, place, main));
  }

  key(key) {
    const step = { ".": 1, ",": -1 }[key];
    if (step) this.step(step);
    else if (key === "Escape") this.stop();
    else if (key === " ") this.play();
    else return false;
    return true;
  }

  /** One column on or back; what is done in it is told. */
  step(by) {
    this.pause();
    const last = this.whole.columns - 1;
    const before = this.state.column ?? (by > 0 ? -1 : last + 1);
    this.reach(Math.min(last, Math.max(0, before + by)));
  }

  reach(column) {
    this.state.column = column;
    const inside = this.shown.boxes.filter((box) => box.column === column);
    this.live.textContent = this.caption.textContent = `${column + 1} of ${this.whole.columns}: ${inside.map(({ label }) => label).join(", ")}`;
    if (inside.length) this.stage.reveal(inside[0]);
    this.stage.repaint();
  }

  /** Plays from here to the answer; without movement, step by step, where the reader wants none. */
  play() {
    if (this.timer) {
      this.pause();
      return;
    }
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const last = this.whole.columns - 1;
    this.reach(this.state.column === null || this.state.column === last ? 0 : this.state.column);
    this.playing.textContent = "❚❚ pause";
    let began = performance.now();
    const turn = (now) => {
      const share = (now - began) / TAKES;
      this.state.share = isStill ? null : Math.min(1, share);
      if (share >= 1) {
        if (this.state.column >= last || !this.element.isConnected) {
          this.stop();
          return;
        }
        began = now;
        this.reach(this.state.column + 1);
      }
      this.stage.repaint();
      this.timer = requestAnimationFrame(turn);
    };
    this.timer = requestAnimationFrame(turn);
  }

  pause() {
    cancelAnimationFrame(this.timer);
    this.timer = 0;
    this.state.share = null;
    this.playing.textContent = "▶ play";
    this.stage.repaint();
  }

  stop() {
    this.pause();
    this.state.column = null;
    this.explain();
    this.stage.repaint();
  }
}
