// A diagram on a canvas: frames, ribbons, boxes with small maps, tokens and answers.

import { asToken } from "./element.js";
import { LINE, MOST_LINES } from "./lanes.js";
import { unpacked } from "./matrix.js";
import { four } from "./number.js";
import { backPath, bezier, forthPath, painted } from "./strokes.js";

/** Of Okabe and Ito, by what a box is; the same in light and dark. */
const COLOURS = {
  input: "#8a8a8a", embedding: "#009e73", stream: "#0072b2", norm: "#8a8a8a", mixer: "#d55e00", weights: "#cc79a7",
  net: "#e69f00", head: "#56b4e9", answer: "#56b4e9", tap: "#d55e00", part: "#8a8a8a",
};
const SMALLEST = 0.42; // scale below which only labels are written
const THIN = 1.2;
const WIDE = 13;
const MAP = { left: 8, top: 26, height: 56 };
const FONT = "system-ui, sans-serif";

/** The colour of a box. */
export function colourOf(box, nodes) {
  return COLOURS[(box.node ?? nodes[box.last]).kind] ?? COLOURS.part;
}

/** How much there is of a node at a place: of other rows than places the mean. */
export function sizeAt(node, place, main) {
  const sizes = node.sizes ?? [];
  if (!sizes.length) return 0;
  if (node.side === main && place < sizes.length) return sizes[place];
  return sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
}

/** A part of the map of a box: its left, top, width and height. */
export function mapOf(box) {
  return { x: box.x + MAP.left, y: box.y + MAP.top, width: box.width - 2 * MAP.left, height: MAP.height };
}

export class Scene {
  constructor(graph, colours) {
    this.graph = graph;
    this.maps = new Map();
    this.turn(colours);
  }

  /** Takes other colours, as of a dark page. */
  turn(colours) {
    this.colours = colours;
    this.pictures = new Map();
  }

  /** The matrix of a node that came with the page: whole, or a smaller map. */
  matrix(node) {
    if (!node.map) return null;
    if (!this.maps.has(node.name)) this.maps.set(node.name, unpacked(node.map));
    return this.maps.get(node.name);
  }

  /**
   * Paints what is seen. look: scale and place of the canvas. state: the place, what is chosen and pointed at, and how far the
   * animation is (column, or null).
   */
  paint(context, { width, height, ratio }, look, shown, state) {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.colours.ground;
    context.fillRect(0, 0, width, height);
    context.setTransform(ratio * look.scale, 0, 0, ratio * look.scale, -ratio * look.x * look.scale, -ratio * look.y * look.scale);
    this.view = { left: look.x, right: look.x + width / look.scale, scale: look.scale };
    for (const frame of [...shown.frames].sort((a, b) => a.depth - b.depth)) this.frame(context, frame, state);
    const most = this.largest(shown.ribbons, state);
    for (const ribbon of shown.ribbons) this.ribbon(context, ribbon, most, state);
    for (const box of shown.boxes) if (this.isSeen(box)) this.box(context, box, state);
  }

  isSeen({ x, width }) {
    return x < this.view.right && x + width > this.view.left;
  }

  /** The largest size of each measure among ribbons. */
  largest(ribbons, state) {
    const most = {};
    for (const ribbon of ribbons) {
      const { measure = "length", size } = this.sizeOf(ribbon, state);
      most[measure] = Math.max(most[measure] ?? 0, size);
    }
    return most;
  }

  sizeOf({ sources }, { place, main }) {
    const node = this.graph.nodes[Math.max(...sources)];
    return { measure: node.measure, size: sizeAt(node, place, main) };
  }

  frame(context, frame, { hovered }) {
    context.beginPath();
    context.roundRect(frame.x, frame.y, frame.width, frame.height, 12);
    context.fillStyle = this.colours.raised;
    context.globalAlpha = 0.55;
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = hovered?.name === frame.name && hovered.isFrame ? 2 : 1;
    context.strokeStyle = hovered?.name === frame.name && hovered.isFrame ? this.colours.accent : this.colours.line;
    context.stroke();
    this.words(context, `▾ ${frame.label}`, frame.x + 10, frame.y + 15, { colour: this.colours.soft, size: 13 });
  }

  ribbon(context, ribbon, most, state) {
    const { from, to, isBack } = ribbon;
    const { measure = "length", size } = this.sizeOf(ribbon, state);
    const share = most[measure] > 0 ? size / most[measure] : 0;
    const isNear = [state.chosen, state.hovered].some((one) => one && (one.name === from.name || one.name === to.name));
    const isReached = state.column === null || to.column <= state.column;
    const path = isBack ? backPath(from, to) : forthPath(from, to);
    context.strokeStyle = colourOf(from, this.graph.nodes);
    context.lineWidth = THIN + WIDE * share;
    context.globalAlpha = (isNear ? 0.85 : 0.32) * (isReached ? 1 : 0.25);
    context.setLineDash(isBack ? [5, 5] : []);
    context.lineWidth = isBack ? THIN + 1 : context.lineWidth;
    context.beginPath();
    context.moveTo(...path[0]);
    context.bezierCurveTo(...path[1], ...path[2], ...path[3]);
    context.stroke();
    context.setLineDash([]);
    if (state.column === to.column && state.share !== null && !isBack) this.pulse(context, path, state.share);
    context.globalAlpha = 1;
  }

  /** What travels along a ribbon while the animation plays. */
  pulse(context, path, share) {
    context.globalAlpha = 0.95;
    context.fillStyle = context.strokeStyle;
    for (const late of [0, 0.12, 0.24]) {
      const at = bezier(path, Math.max(0, share - late));
      context.beginPath();
      context.arc(at[0], at[1], 5 - 10 * late, 0, 2 * Math.PI);
      context.fill();
    }
  }

  box(context, box, state) {
    const isChosen = state.chosen?.name === box.name;
    const isHovered = state.hovered?.name === box.name && !state.hovered.isFrame;
    context.globalAlpha = state.column === null || box.column <= state.column ? 1 : 0.22;
    const sheets = box.kind === "node" ? 0 : 2;
    for (let sheet = sheets; sheet >= 0; sheet -= 1) {
      context.beginPath();
      context.roundRect(box.x + 4 * sheet, box.y - 4 * sheet, box.width, box.height, 9);
      context.fillStyle = this.colours.ground;
      context.fill();
      context.lineWidth = isChosen || isHovered ? 2.5 : 1.3;
      context.strokeStyle = isChosen || isHovered ? this.colours.accent : colourOf(box, this.graph.nodes);
      context.stroke();
    }
    const label = box.kind === "node" ? box.label : `▸ ${box.label}`;
    this.words(context, label, box.x + 8, box.y + 17, { bold: true, size: 13, room: box.width - 16 });
    const { node } = box;
    if (node?.kind === "answer") this.answer(context, box, state);
    else if (node?.kind === "input" && !node.map) this.tokens(context, box, node, state);
    else this.body(context, box, node ?? this.graph.nodes[box.last], state);
    context.globalAlpha = 1;
  }

  body(context, box, node, state) {
    const { x, y, width, height } = mapOf(box);
    const picture = this.picture(node);
    if (picture) {
      context.imageSmoothingEnabled = false;
      context.drawImage(picture, x, y, width, height);
      context.strokeStyle = this.colours.line;
      context.lineWidth = 0.6;
      context.strokeRect(x, y, width, height);
      this.mark(context, node, { x, y, width, height }, state);
    }
    if (this.view.scale < SMALLEST) return;
    const told = (node.shape ?? []).join(" × ");
    const size = sizeAt(node, state.place, state.main);
    const measure = node.measure === "largest weight" ? "max" : "‖·‖";
    this.words(context, told, x, box.y + 96, { colour: this.colours.soft, size: 11, room: width - 46 });
    const amount = (node.sizes ?? []).length ? `${measure} ${four(Number(size.toPrecision(3)))}` : "";
    this.words(context, amount, x + width, box.y + 96, { colour: this.colours.soft, size: 11, align: "right" });
  }

  /** The row of the place in a small map. */
  mark(context, node, { x, y, width, height }, { place, main }) {
    if (node.side !== main) return;
    const rows = node.sizes?.length || 1;
    const tall = Math.max(2, height / rows);
    context.strokeStyle = this.colours.mark;
    context.lineWidth = 1.6;
    context.strokeRect(x - 1, y + (height * place) / rows - 0.5, width + 2, tall + 1);
  }

  /** A small map as a picture, painted once. */
  picture(node) {
    const matrix = this.matrix(node);
    if (!matrix || !matrix.values.length) return null;
    if (!this.pictures.has(node.name)) this.pictures.set(node.name, painted(matrix, node, this.colours.isDark));
    return this.pictures.get(node.name);
  }

  /** What a cell of a small map is called, and its number. down, across: where it is, as shares of the map. */
  cell(node, matrix, down, across) {
    const [tall, wide] = node.block ?? [1, 1];
    const parts = node.parts ?? 1;
    const rows = matrix.rows / parts;
    const part = Math.floor(across * parts);
    const [row, column] = [Math.floor(down * rows), Math.floor((across * parts - part) * matrix.columns)];
    const labels = node.rows ?? this.graph.panel.sides[node.side] ?? [];
    const of = parts > 1 && node.slices ? `${node.slices[part]}, ` : "";
    const first = column * wide + 1;
    const unit = wide > 1 ? `${first} to ${first + wide - 1}` : String(first);
    const name = `${of}${asToken(labels[row * tall] ?? row * tall + 1)}, ${unit}`;
    return { name, value: matrix.row(part * rows + row)[column] };
  }

  /** The position that a token or a row of a map stands for, at a height of the picture; null where it is none. */
  rowAt(box, y, { place, main }) {
    const { node } = box;
    const count = this.graph.panel.sides[main]?.length ?? 0;
    if (node.side !== main) return null;
    if (node.kind !== "input" || node.map) return null;
    const row = windowOf(count, place, true) + Math.floor((y - box.y - 28) / LINE);
    return row >= 0 && row < count ? row : null;
  }

  tokens(context, box, node, { place, main }) {
    const labels = this.graph.panel.sides[node.side] ?? [];
    const first = windowOf(labels.length, place, node.side === main);
    labels.slice(first, first + MOST_LINES).forEach((label, row) => {
      const isHere = node.side === main && first + row === place;
      const y = box.y + 32 + LINE * row;
      if (isHere) {
        context.fillStyle = this.colours.mark;
        context.fillRect(box.x + 4, y - 4, 3, LINE - 2);
      }
      const number = String(first + row + (node.side === main ? (this.graph.panel.first ?? 1) : 1));
      this.words(context, number, box.x + 30, y + 8, { colour: this.colours.soft, size: 10, align: "right" });
      this.words(context, asToken(label), box.x + 36, y + 8, { bold: isHere, size: 13, room: box.width - 44 });
    });
  }

  answer(context, box, { told }) {
    const most = Math.max(...told.values.map(Math.abs), 1e-12);
    told.names.slice(0, MOST_LINES).forEach((name, row) => {
      const y = box.y + 28 + LINE * row;
      const wide = (90 * Math.abs(told.values[row])) / most;
      context.fillStyle = COLOURS.answer;
      context.fillRect(box.x + 92, y, Math.max(0.5, wide), LINE - 5);
      this.words(context, asToken(name), box.x + 86, y + 11, { size: 13, align: "right", room: 80, bold: row === 0 });
      this.words(context, four(Number(told.values[row].toPrecision(3))), box.x + 96 + wide, y + 10, { size: 11, colour: this.colours.soft });
    });
  }

  words(context, text, x, y, { colour = this.colours.ink, size = 13, bold = false, align = "left", room = Infinity } = {}) {
    if (!text || size * this.view.scale < 4) return;
    context.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    context.fillStyle = colour;
    context.textAlign = align;
    let shown = text;
    if (room < Infinity && context.measureText(shown).width > room) context.font = context.font.replace(`${size}px`, `${0.86 * size}px`);
    while (shown.length > 1 && room < Infinity && context.measureText(shown).width > room) shown = `${shown.slice(0, -2)}…`;
    context.fillText(shown, x, y);
  }
}

/** The first of the tokens that are written: those around the place. */
export function windowOf(count, place, isMain) {
  if (count <= MOST_LINES || !isMain) return 0;
  return Math.min(count - MOST_LINES, Math.max(0, place - Math.floor(MOST_LINES / 2)));
}
