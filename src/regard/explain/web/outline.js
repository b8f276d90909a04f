// The nodes of a diagram as a tree, for the keyboard and for who listens: groups that open, and nodes within them.

import { asToken, make } from "./element.js";
import { four } from "./number.js";

const STEPS = { ArrowDown: 1, ArrowUp: -1 };

/** calls: onpick(name, isGroup), told(node) what is said of a node. */
export class Outline {
  constructor(graph, calls) {
    this.graph = graph;
    this.calls = calls;
    this.tree = make("ul", { role: "tree", class: "outline", "aria-label": "Parts of the model, first to last" });
    this.tree.addEventListener("keydown", (event) => this.key(event));
    this.element = make("details", { class: "as-table" }, make("summary", {}, "as an outline"), this.tree);
    this.element.addEventListener("toggle", () => this.show());
  }

  /** Draws what is open now; the chosen one can be reached by Tab. */
  show(chosen = this.chosen) {
    this.chosen = chosen;
    if (!this.element.open) return;
    const hadFocus = this.tree.contains(document.activeElement);
    this.tree.replaceChildren(...this.items("", 1));
    const items = [...this.tree.querySelectorAll("[role=treeitem]")];
    const current = items.find((item) => item.dataset.name === chosen) ?? items[0];
    if (!current) return;
    current.tabIndex = 0;
    if (hadFocus) current.focus();
  }

  items(parent, level) {
    const nodes = this.graph.nodes.filter(({ group = "" }) => (this.graph.groups.has(group) ? group : "") === parent);
    const groups = [...this.graph.groups.values()].filter((group) => group.parent === parent);
    const each = [
      ...nodes.map((node) => [node.number, this.leaf(node, level)]),
      ...groups.map((group) => [group.nodes[0], this.branch(group, level)]),
    ];
    return each.sort(([a], [b]) => a - b).map(([, item]) => item);
  }

  leaf(node, level) {
    const given = { role: "treeitem", tabindex: -1, "aria-level": level, "data-name": node.name };
    const item = make("li", { ...given, "aria-selected": String(this.chosen === node.name) }, this.calls.told(node));
    item.addEventListener("click", (event) => this.pick(event, node.name, false));
    return item;
  }

  branch(group, level) {
    const isOpen = this.graph.opened.has(group.name);
    const given = { role: "treeitem", tabindex: -1, "aria-level": level, "data-name": group.name };
    const inside = isOpen ? make("ul", { role: "group" }, ...this.items(group.name, level + 1)) : null;
    const label = `${group.label}, ${group.nodes.length} parts`;
    const named = { ...given, "aria-expanded": String(isOpen), "aria-label": label, "data-group": "yes" };
    const item = make("li", named, `${isOpen ? "▾" : "▸"} ${label}`, inside);
    item.addEventListener("click", (event) => this.pick(event, group.name, true));
    return item;
  }

  pick(event, name, isGroup) {
    event.stopPropagation();
    this.chosen = name;
    this.calls.onpick(name, isGroup);
  }

  key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const items = [...this.tree.querySelectorAll("[role=treeitem]")];
    const at = items.indexOf(item);
    const isGroup = Boolean(item.dataset.group);
    const isOpen = item.getAttribute("aria-expanded") === "true";
    const turns = (event.key === "ArrowRight" && !isOpen) || (event.key === "ArrowLeft" && isOpen);
    if (STEPS[event.key]) this.go(items[at + STEPS[event.key]]);
    else if (event.key === "Home") this.go(items[0]);
    else if (event.key === "End") this.go(items.at(-1));
    else if (event.key === "Enter" || event.key === " " || (isGroup && turns)) this.pick(event, item.dataset.name, isGroup);
    else if (event.key === "ArrowLeft") this.go(item.parentElement.closest("[role=treeitem]"));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  go(item) {
    if (!item) return;
    for (const one of this.tree.querySelectorAll("[tabindex='0']")) one.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }
}

/** What is said of a node in a line. */
export function toldOf(node, size) {
  const shape = (node.shape ?? []).join(" × ");
  const amount = node.sizes?.length ? `, ${node.measure ?? "length"} ${four(Number(size.toPrecision(4)))}` : "";
  return `${asToken(node.label)}${shape ? `, ${shape}` : ""}${amount}`;
}
