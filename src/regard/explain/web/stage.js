// A canvas that is moved and zoomed by mouse, touch and keys.

import { make, whenSized } from "./element.js";

const NEAREST = 3;
const KEPT = 0.62; // smallest scale that a diagram begins with: what is smaller cannot be read
const STEP = 60;
const SLACK = 4; // pixels that a click may move
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * What is looked at of a picture of a given size. calls: paint(context, size, look), onpoint(place, event) with what is
 * pointed at or null, onpick(place), onkey(key) that tells whether it was of use.
 */
export class Stage {
  constructor(label, calls) {
    this.calls = calls;
    this.look = { x: 0, y: 0, scale: 1 };
    this.size = { width: 0, height: 0, ratio: 1 };
    this.whole = { width: 1, height: 1 };
    this.pointers = new Map();
    this.canvas = make("canvas", { class: "diagram", tabindex: 0, role: "application", "aria-label": label });
    this.context = this.canvas.getContext("2d");
    whenSized(this.canvas, (width) => this.resize(width));
    const on = (name, act, given) => this.canvas.addEventListener(name, act, given);
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("pointerleave", () => this.calls.onpoint(null));
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("dblclick", (event) => this.zoom(1.5, this.spot(event)));
    on("keydown", (event) => this.key(event));
  }

  /** Takes the size of the picture. isNew: whether it is looked at from its beginning. */
  hold(whole, isNew) {
    this.whole = whole;
    if (isNew && this.size.width) this.begin();
    this.repaint();
  }

  resize(width) {
    const isFirst = !this.size.width;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const height = this.canvas.clientHeight;
    this.size = { width, height, ratio };
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    if (isFirst) this.begin();
    this.repaint();
  }

  /** The whole where it can be read, else its beginning. */
  begin() {
    const fit = this.fitting();
    const tall = Math.min(1, this.size.height / (this.whole.height + 16));
    this.look.scale = Math.min(1.25, Math.max(fit, KEPT, tall));
    this.look.x = 0;
    this.look.y = Math.min(0, (this.whole.height - this.size.height / this.look.scale) / 2);
  }

  fitting() {
    return Math.min(this.size.width / (this.whole.width + 40), this.size.height / (this.whole.height + 10));
  }

  /** The whole, however small. */
  fit() {
    this.look.scale = this.fitting();
    this.look.x = (this.whole.width - this.size.width / this.look.scale) / 2;
    this.look.y = (this.whole.height - this.size.height / this.look.scale) / 2;
    this.repaint();
  }

  /** Zooms about a spot of the canvas; its middle without one. */
  zoom(by, spot = [this.size.width / 2, this.size.height / 2]) {
    const before = this.look.scale;
    this.look.scale = Math.min(NEAREST, Math.max(Math.min(0.1, this.fitting()), before * by));
    this.look.x += spot[0] / before - spot[0] / this.look.scale;
    this.look.y += spot[1] / before - spot[1] / this.look.scale;
    this.repaint();
  }

  pan(x, y) {
    this.look.x += x / this.look.scale;
    this.look.y += y / this.look.scale;
    this.holdNear();
    this.repaint();
  }

  /** Moves as little as shows a box. */
  reveal({ x, y, width, height }) {
    const { scale } = this.look;
    const [wide, tall] = [this.size.width / scale, this.size.height / scale];
    this.look.x = Math.min(x - 20, Math.max(this.look.x, x + width + 20 - wide));
    this.look.y = Math.min(y - 20, Math.max(this.look.y, y + height + 20 - tall));
    this.repaint();
  }

  holdNear() {
    const [wide, tall] = [this.size.width / this.look.scale, this.size.height / this.look.scale];
    this.look.x = Math.min(this.whole.width - 0.2 * wide, Math.max(-0.8 * wide, this.look.x));
    this.look.y = Math.min(this.whole.height - 0.2 * tall, Math.max(-0.8 * tall, this.look.y));
  }

  repaint() {
    if (this.waiting || !this.size.width) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.calls.paint(this.context, this.size, this.look);
    });
  }

  spot({ clientX, clientY }) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [clientX - left, clientY - top];
  }

  /** Where in the picture an event is. */
  place(event) {
    const [x, y] = this.spot(event);
    return [this.look.x + x / this.look.scale, this.look.y + y / this.look.scale];
  }

  press(event) {
    if (event.button) return; // of another button the release may never come
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.spot(event));
    this.moved = this.pointers.size > 1 ? Infinity : 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.calls.onpoint(this.place(event), event);
      return;
    }
    const now = this.spot(event);
    const other = [...this.pointers].find(([number]) => number !== event.pointerId)?.[1];
    if (other) {
      const far = (spot) => Math.hypot(spot[0] - other[0], spot[1] - other[1]) || 1;
      this.zoom(far(now) / far(before), other);
    }
    this.moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    this.pointers.set(event.pointerId, now);
    if (this.moved > SLACK) this.pan(before[0] - now[0], before[1] - now[1]);
  }

  release(event) {
    if (this.pointers.delete(event.pointerId) && this.moved <= SLACK) this.calls.onpick(this.place(event));
  }

  /** The wheel scrolls the page; with Ctrl, as two fingers on a pad send it, it zooms, and sideways it moves. */
  wheel(event) {
    if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 300), this.spot(event));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX || event.deltaY, 0);
    else return;
    event.preventDefault();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = KEYS[event.key];
    if (step) this.pan(STEP * step[0], STEP * step[1]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (!this.calls.onkey(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }
}
