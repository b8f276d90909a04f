// A picture under the weights of each word that was written from it: one word at a time, played or walked through.

import { freshName, make, token, visible, whenSized } from "./element.js";
import { unpacked } from "./matrix.js";
import { four } from "./number.js";
import { canvasOf } from "./png.js";

const LARGEST = 420; // pixels of the picture
const SMALL = 96; // and of each of the strip
const PACE = 900; // milliseconds of a word while it plays
const DIM = { colour: [10, 12, 20], strength: 0.55 }; // where least is looked at
const TINT = { colour: [255, 120, 10], strength: 0.6 }; // where most is

/** The body of a picture under weights. memory: the word that the reader was at, and whether squares are drawn sharp. */
export function drawOverlay(panel, { memory = {} } = {}) {
  if (!panel.words.length) return make("p", { class: "unit" }, "no words");
  return new Overlay(panel, memory).element;
}

class Overlay {
  constructor(panel, memory) {
    this.panel = panel;
    this.memory = memory;
    this.memory.word = Math.min(memory.word ?? 0, panel.words.length - 1);
    this.weights = unpacked(panel.weights);
    this.stage = make("canvas", { role: "img" });
    this.told = make("p", { class: "told", role: "status" });
    this.strip = panel.words.map((word, place) => this.entry(word, place));
    const walk = (step) => () => this.go(this.memory.word + step);
    const button = (label, act) => make("button", { type: "button", onclick: act }, label);
    this.playing = button("▶ Play", () => this.play(!this.timer));
    this.before = button("← Previous", walk(-1));
    this.after = button("Next →", walk(1));
    const sharp = make("input", { type: "checkbox", id: freshName("sharp"), checked: memory.isSharp });
    sharp.addEventListener("change", () => this.change({ isSharp: sharp.checked }));
    const squares = make("label", { for: sharp.id }, sharp, ` the ${panel.grid.join(" x ")} squares as they are`);
    const tools = make("div", { class: "bar-of-tools" }, this.before, this.playing, this.after, squares);
    const label = `${panel.title || "Picture"}. Arrow keys walk, Space plays.`;
    this.frame = make("div", { class: "under", tabindex: 0, role: "group", "aria-label": label }, this.stage);
    const strip = make("div", { class: "film", role: "group", "aria-label": "Words" }, ...this.strip);
    const scene = make("div", { class: "scene" }, this.frame, this.told);
    this.element = make("div", { class: "overlay" }, tools, scene, strip);
    this.listen();
    this.ready = canvasOf(panel.picture).then((picture) => {
      this.picture = picture;
      whenSized(this.element, (width) => this.size(Math.min(LARGEST, width)));
    });
  }

  entry(word, place) {
    const canvas = make("canvas", { width: SMALL, height: SMALL, "aria-hidden": "true" });
    const given = { type: "button", class: "frame", "aria-label": this.words(place) };
    return make("button", { ...given, onclick: () => this.go(place) }, canvas, token(word));
  }

  /** A word and where most of its weight is. */
  words(place) {
    return `${visible(this.panel.words[place])}, ${this.place(place)}`;
  }

  /** Which word it is and where most of its weight is, rows and columns from 1 on. */
  place(place) {
    const row = this.weights.row(place);
    const best = row.reduce((most, value, at) => (value > row[most] ? at : most), 0);
    const [, columns] = this.panel.grid;
    const at = `row ${Math.floor(best / columns) + 1}, column ${(best % columns) + 1}`;
    const { words, scale = "weight" } = this.panel;
    return `word ${place + 1} of ${words.length}: most of its ${scale} at ${at}, ${four(row[best])}`;
  }

  listen() {
    this.element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      const isPlay = event.key === " " && event.target === this.frame;
      if (step) this.go(this.memory.word + step);
      else if (isPlay) this.play(!this.timer);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.stage.addEventListener("pointermove", (event) => this.point(event));
    this.stage.addEventListener("pointerleave", () => this.tell());
  }

  go(word) {
    this.change({ word: Math.min(this.panel.words.length - 1, Math.max(0, word)) });
  }

  change(values) {
    Object.assign(this.memory, values);
    this.paint();
    if ("isSharp" in values) this.paintStrip();
  }

  /** Plays on from the word that is shown, or from the first one where that is the last. */
  play(isOn) {
    clearInterval(this.timer);
    this.timer = null;
    this.playing.textContent = isOn ? "❚❚ Pause" : "▶ Play";
    if (!isOn) return;
    const last = this.panel.words.length - 1;
    if (this.memory.word === last) this.go(0);
    this.timer = setInterval(() => {
      if (this.memory.word < last && this.element.isConnected) this.go(this.memory.word + 1);
      else this.play(false);
    }, PACE);
  }

  size(side) {
    const ratio = window.devicePixelRatio || 1;
    this.stage.width = this.stage.height = Math.round(side * ratio);
    this.stage.style.width = this.stage.style.height = `${side}px`;
    this.paint();
    this.paintStrip();
  }

  paint() {
    const { word } = this.memory;
    this.strip.forEach((one, place) => one.setAttribute("aria-current", place === word ? "step" : "false"));
    const now = this.strip[word];
    const film = now?.parentElement;
    if (film) film.scrollLeft = now.offsetLeft - (film.clientWidth - now.offsetWidth) / 2;
    this.before.disabled = word === 0;
    this.after.disabled = word === this.panel.words.length - 1;
    this.tell();
    if (this.picture) this.draw(this.stage, word);
  }

  paintStrip() {
    this.strip.forEach((one, place) => this.draw(one.firstChild, place));
  }

  draw(canvas, word) {
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = true;
    context.imageSmoothingQuality = "high";
    context.drawImage(this.picture, 0, 0, canvas.width, canvas.height);
    context.imageSmoothingEnabled = !this.memory.isSharp;
    for (const veil of this.veils(word)) context.drawImage(veil, 0, 0, canvas.width, canvas.height);
  }

  /** Two veils, a pixel a square: one dark where little is looked at, one warm where much is. */
  veils(word) {
    const [rows, columns] = this.panel.grid;
    const row = this.weights.row(word);
    const most = row.reduce((best, value) => Math.max(best, value || 0), 0) || 1;
    return [DIM, TINT].map((look) => {
      const canvas = make("canvas", { width: columns, height: rows });
      const image = new ImageData(columns, rows);
      row.forEach((value, place) => {
        const share = (value || 0) / most;
        const alpha = look.strength * (look === DIM ? 1 - share : share);
        image.data.set([...look.colour, Math.round(255 * alpha)], 4 * place);
      });
      canvas.getContext("2d").putImageData(image, 0, 0);
      return canvas;
    });
  }

  tell() {
    this.say(this.place(this.memory.word));
    this.stage.setAttribute("aria-label", this.words(this.memory.word));
  }

  say(text) {
    this.told.replaceChildren(token(this.panel.words[this.memory.word], { class: "token now" }), text);
  }

  /** What the square under the pointer has. */
  point(event) {
    const box = this.stage.getBoundingClientRect();
    const [rows, columns] = this.panel.grid;
    const inside = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    const row = inside((event.clientY - box.top) / box.height, rows);
    const column = inside((event.clientX - box.left) / box.width, columns);
    const weight = four(this.weights.row(this.memory.word)[row * columns + column]);
    this.say(`row ${row + 1}, column ${column + 1}: ${weight}`);
  }
}
