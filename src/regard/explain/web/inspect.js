// One matrix of a diagram with its numbers: as a map, head by head, in full where somebody can be asked for it.

import { freshName, make } from "./element.js";
import { drawHeat } from "./heat.js";
import { Matrix, unpacked } from "./matrix.js";
import { counted, four } from "./number.js";
import { sizeAt } from "./scene.js";
import { rangeOf } from "./strokes.js";

const MOST_AT_ONCE = 256 * 256; // numbers of rows that are asked for together
const MOST = 1024 * 1024; // numbers of a matrix that is asked for

/** graph, scene: of the diagram. exactRows(first, count, of): rows of a node, or null. */
export class Inspector {
  constructor(graph, scene, exactRows) {
    this.graph = graph;
    this.scene = scene;
    this.exactRows = exactRows;
    this.slice = 0;
    this.element = make("div", { class: "inspector" });
  }

  /** Shows a node, at a place of its main side. go(number) leads to another node. */
  async show(node, { place, main, go }) {
    this.asked = (this.asked ?? 0) + 1;
    const asked = this.asked;
    const head = this.head(node, { place, main, go });
    const matrix = this.scene.matrix(node);
    if (!matrix) {
      this.element.replaceChildren(...head, this.without(node));
      return;
    }
    const slices = node.slices?.length ? node.slices : [""];
    this.slice = Math.min(this.slice, slices.length - 1);
    const asks = this.exactRows && node.block && this.size(node) <= MOST;
    const choice = slices.length > 1 && (node.parts || asks) ? this.choice(node, slices, { place, main, go }) : null;
    if (asks) this.element.replaceChildren(...head, choice ?? "", make("p", { class: "hint" }, "The numbers are on their way."));
    const exact = asks ? await this.fetched(node).catch(() => null) : null;
    if (asked !== this.asked) return;
    const [shown, note] = exact ? [exact, ""] : this.given(node, matrix);
    const panel = this.panel(node, shown, !exact && Boolean(node.block));
    const told = note ? make("p", { class: "unit" }, note) : null;
    this.element.replaceChildren(...[...head, choice, drawHeat(panel, { hidesSink: false }), told].filter(Boolean));
  }

  size(node) {
    const { rows, columns } = this.full(node);
    return rows * columns;
  }

  /** How many rows and columns one slice has. */
  full(node) {
    const [rows, ...rest] = node.shape;
    const all = rest.reduce((product, count) => product * count, 1);
    return { rows, columns: all / (node.slices?.length || 1) };
  }

  async fetched(node) {
    const { rows, columns } = this.full(node);
    const matrix = new Matrix(rows, columns, new Float32Array(rows * columns));
    const most = Math.max(1, Math.floor(MOST_AT_ONCE / columns));
    for (let first = 0; first < rows; first += most) {
      const found = await this.exactRows(first, Math.min(most, rows - first), { node: node.name, part: this.slice });
      matrix.learn(first, unpacked(found));
    }
    return matrix;
  }

  /** What came with the page: a slice in full, or a smaller map of all. */
  given(node, matrix) {
    if (!node.parts) {
      const [rows, columns] = node.block;
      const what = node.kind === "weights" ? "the largest weight of all heads" : "the number farthest from zero";
      return [matrix, `A smaller map: a cell is ${what} in ${counted(rows, "row")} and ${counted(columns, "column")}.`];
    }
    const rows = matrix.rows / node.parts;
    const begin = this.slice * rows * matrix.columns;
    return [new Matrix(rows, matrix.columns, matrix.values.subarray(begin, begin + rows * matrix.columns)), ""];
  }

  panel(node, matrix, isSmall) {
    const { low, high } = rangeOf(matrix, node);
    const [down, across] = isSmall ? node.block : [1, 1];
    const side = this.graph.panel.sides[node.side] ?? [];
    const own = node.rows?.length ? node.rows : side;
    const [first = ""] = node.columns ?? [];
    const names = first.startsWith("side:") ? this.graph.panel.sides[first.slice(5)] : (node.columns ?? []);
    const scale = node.kind === "weights" ? "weight" : "number";
    return {
      title: node.label,
      weights: matrix,
      rows: labels(own, matrix.rows, down),
      columns: labels(names.length === matrix.columns * across ? names : [], matrix.columns, across),
      row_name: node.side || "row",
      column_name: first.startsWith("side:") ? first.slice(5) : "unit",
      low,
      high,
      scale,
    };
  }

  head(node, { place, main, go }) {
    const size = sizeAt(node, place, main);
    const isAt = node.side === main;
    const facts = [
      ["shape", (node.shape ?? []).join(" × ")],
      node.sizes?.length ? [`${node.measure ?? "length"}${isAt ? " here" : ", mean"}`, four(size)] : null,
      ["part", node.name || "the model"],
    ].filter(Boolean);
    const list = facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    return [
      make("h4", {}, node.label),
      make("dl", { class: "about" }, ...list),
      node.note ? make("p", { class: "unit" }, node.note) : "",
      this.ways("made of", this.graph.into[node.number], go),
      this.ways("goes into", this.graph.from[node.number], go),
    ];
  }

  ways(what, ways, go) {
    if (!ways.length) return "";
    const buttons = ways.map(({ number, isBack }) => {
      const label = this.graph.nodes[number].label + (isBack ? " (a step before)" : "");
      return make("button", { type: "button", onclick: () => go(number) }, label);
    });
    return make("p", { class: "ways" }, make("span", { class: "unit" }, what), ...buttons);
  }

  choice(node, slices, more) {
    const pick = (event) => {
      this.slice = Number(event.target.value);
      this.show(node, more);
    };
    const select = make("select", { id: freshName("slice"), onchange: pick });
    slices.forEach((name, value) => select.append(make("option", { value, selected: value === this.slice }, name)));
    return make("label", { class: "control", for: select.id }, "of ", select);
  }

  without(node) {
    if (node.kind === "input") return make("p", { class: "unit" }, "What is read: its tokens stand in the diagram.");
    if (node.kind === "answer") return make("p", { class: "unit" }, "The answers stand below the diagram.");
    return make("p", { class: "unit" }, "Of this part only lengths are at hand.");
  }
}

function labels(names, count, step) {
  if (step === 1) return names.length ? names : Array.from({ length: count }, (_, place) => String(place + 1));
  return Array.from({ length: count }, (_, place) => {
    const [first, last] = [place * step, Math.min(names.length || Infinity, (place + 1) * step) - 1];
    return names.length ? `${names[first]} … ${names[last]}` : `${first + 1} to ${last + 1}`;
  });
}
