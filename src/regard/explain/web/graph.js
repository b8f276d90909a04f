// A graph of nodes in groups, of which some are open: what is seen of it are boxes, and ribbons between them.

const LEAST_RUN = 2; // closed layers side by side that stand as one box

/**
 * The graph of a panel. opened: names of groups whose nodes are seen. spread: groups whose closed layers stand apart.
 * Numbers of nodes are their places in the order in which they were made.
 */
export class Graph {
  constructor(panel) {
    this.panel = panel;
    this.nodes = panel.nodes.map((node, number) => ({ ...node, number }));
    this.groups = new Map(panel.groups.map((group) => [group.name, { ...group, nodes: [], children: [] }]));
    for (const group of this.groups.values()) this.groups.get(group.parent)?.children.push(group);
    for (const node of this.nodes) {
      for (let group = this.groups.get(node.group); group; group = this.groups.get(group.parent)) {
        group.nodes.push(node.number);
      }
    }
    this.into = this.nodes.map(() => []);
    this.from = this.nodes.map(() => []);
    for (const [source, target, isBack] of panel.edges) {
      this.into[target].push({ number: source, isBack });
      this.from[source].push({ number: target, isBack });
    }
    this.opened = new Set();
    this.spread = new Set();
    this.begin();
  }

  /** As it is seen first: of every stack one layer with its mixer, and all that is no layer. */
  begin() {
    this.opened.clear();
    this.spread.clear();
    const seen = new Set();
    for (const group of this.groups.values()) {
      const isInside = group.parent === "" || this.opened.has(group.parent);
      const isFirst = group.kind !== "layer" || !seen.has(group.parent);
      if (!isInside || !isFirst) continue;
      if (group.kind === "layer") seen.add(group.parent);
      if (group.kind !== "mixer" || this.weighs(group)) this.opened.add(group.name);
    }
  }

  /** Whether a mixer is more than one tap and what comes of it. */
  weighs(group) {
    return group.nodes.length > 2;
  }

  /** Opens or closes a group, or tells the layers of a run apart. */
  turn(box) {
    if (box.kind === "run") this.spread.add(box.parent);
    else if (this.opened.has(box.name)) this.opened.delete(box.name);
    else this.opened.add(box.name);
  }

  /** Makes a node seen. */
  reveal(number) {
    let group = this.groups.get(this.nodes[number].group);
    for (; group; group = this.groups.get(group.parent)) this.opened.add(group.name);
  }

  /** The boxes that are seen, in the order in which they are done, frames around open groups, and ribbons. */
  seen() {
    const boxes = [];
    const frames = [];
    this.gather("", 0, boxes, frames);
    boxes.sort((a, b) => a.last - b.last);
    const of = new Map();
    for (const box of boxes) for (const number of box.numbers) of.set(number, box);
    return { boxes, frames, ribbons: this.ribbons(of), of };
  }

  gather(parent, depth, boxes, frames) {
    const items = this.nodes.filter(({ group }) => (this.groups.has(group) ? group : "") === parent).map(nodeBox);
    for (const group of this.groups.values()) {
      if (group.parent !== parent) continue;
      if (!this.opened.has(group.name)) {
        items.push(this.groupBox(group));
        continue;
      }
      const inside = [];
      this.gather(group.name, depth + 1, inside, frames);
      frames.push({ ...group, depth, boxes: inside });
      boxes.push(...inside);
    }
    boxes.push(...this.joined(items, parent));
  }

  groupBox(group) {
    const last = this.nodes[group.nodes.at(-1)];
    const isMain = group.kind === "layer" || group.kind === "stack" || last.main;
    const { name, label, kind, parent } = group;
    return { name, label, kind: "group", of: kind, numbers: group.nodes, last: last.number, parent, isMain };
  }

  /** Closed layers beside each other as one box. */
  joined(items, parent) {
    items.sort((a, b) => a.last - b.last);
    const kept = [];
    for (const item of items) {
      const before = kept.at(-1);
      const isLayer = item.of === "layer" && !this.spread.has(parent);
      if (isLayer && before?.of === "layer") kept[kept.length - 1] = run(before, item, parent);
      else kept.push(item);
    }
    return kept.flatMap((item) => (item.kind === "run" && item.parts.length < LEAST_RUN ? item.parts : [item]));
  }

  ribbons(of) {
    const found = new Map();
    for (const [source, target, isBack] of this.panel.edges) {
      const [from, to] = [of.get(source), of.get(target)];
      if (from === to && (!isBack || from.kind !== "node")) continue;
      const key = `${from.name}>${to.name}`;
      const ribbon = found.get(key) ?? { from, to, sources: [], isBack: true };
      if (!ribbon.sources.includes(source)) ribbon.sources.push(source);
      ribbon.isBack &&= Boolean(isBack) || from.last >= to.last;
      found.set(key, ribbon);
    }
    return [...found.values()];
  }
}

function nodeBox(node) {
  const { name, label, number, main } = node;
  return { name, label, kind: "node", node, numbers: [number], last: number, parent: node.group, isMain: Boolean(main) };
}

function run(before, item, parent) {
  const parts = [...(before.parts ?? [before]), item];
  const digits = (label) => label.match(/\d+/)?.[0] ?? "";
  const label = `layers ${digits(parts[0].label)} to ${digits(item.label)}`;
  const numbers = parts.flatMap((part) => part.numbers);
  const name = `${parts[0].name}..`;
  return { name, label, kind: "run", of: "layer", numbers, last: item.last, parent, parts, isMain: true };
}
