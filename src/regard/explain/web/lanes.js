// Where boxes stand: columns by how far they are from what is read, lanes within a column, a band for each side.

export const BOX = { width: 118, height: 104 };
export const LINE = 17; // of a token or an answer
export const MOST_LINES = 14;
const TOKENS = 128;
const ANSWER = 236;
const GAP = { x: 46, y: 32, band: 40, frame: 20 };

/** Gives every box x, y, width, height and its column, every frame its corners, and tells how large the whole is. */
export function arranged({ boxes, frames, ribbons }, panel) {
  const columns = columnsOf(boxes, ribbons);
  const bands = Object.keys(panel.sides);
  const lanes = new Map();
  for (const box of boxes) {
    const last = panel.nodes[box.last];
    box.band = Math.max(0, bands.indexOf(last.band));
    Object.assign(box, sizeOf(box, panel));
    box.lane = laneOf(box, lanes);
  }
  const xs = offsets(columns.map((inside) => Math.max(...inside.map((box) => box.width))), GAP.x);
  const depth = Math.max(0, ...frames.map((frame) => frame.depth + 1));
  const tops = topsOf(boxes, bands.length, depth);
  for (const box of boxes) {
    box.x = xs[box.column] + (columns[box.column].width - box.width) / 2;
    box.y = tops[box.band] + box.lane * (BOX.height + GAP.y);
  }
  for (const frame of frames) Object.assign(frame, around(frame, depth));
  const width = Math.max(...boxes.map((box) => box.x + box.width));
  const height = Math.max(...boxes.map((box) => box.y + box.height), ...frames.map((frame) => frame.y + frame.height));
  return { width, height: height + GAP.frame, columns: columns.length };
}

/** Boxes by column: one after the last of those that it is made from. */
function columnsOf(boxes, ribbons) {
  const columns = [];
  const into = new Map(boxes.map((box) => [box, []]));
  for (const { from, to, isBack } of ribbons) if (!isBack && from !== to) into.get(to).push(from);
  for (const box of boxes) {
    box.column = Math.max(-1, ...into.get(box).map((from) => from.column ?? -1)) + 1;
  }
  // What nothing comes into stands right before what it goes to, such as positions.
  for (const box of boxes) {
    if (into.get(box).length || box.node?.kind === "input") continue;
    const next = ribbons.filter(({ from, to, isBack }) => from === box && to !== box && !isBack);
    if (next.length) box.column = Math.max(0, Math.min(...next.map(({ to }) => to.column)) - 1);
  }
  for (const box of boxes) (columns[box.column] ??= []).push(box);
  for (let place = 0; place < columns.length; place += 1) columns[place] ??= [];
  for (const inside of columns) inside.width = Math.max(0, ...inside.map((box) => sizeOfKind(box)));
  return columns;
}

/** The first free lane: of the main way the first of all, of all else one below that. */
function laneOf(box, lanes) {
  const key = `${box.band} ${box.column}`;
  const taken = lanes.get(key) ?? new Set();
  lanes.set(key, taken);
  let lane = box.isMain ? 0 : 1;
  while (taken.has(lane)) lane += 1;
  const tall = Math.ceil((box.height + GAP.y) / (BOX.height + GAP.y));
  for (let more = 0; more < tall; more += 1) taken.add(lane + more);
  return lane;
}

function sizeOfKind(box) {
  if (box.node?.kind === "answer") return ANSWER;
  return box.node?.kind === "input" ? TOKENS : BOX.width;
}

function sizeOf(box, panel) {
  const { node } = box;
  const width = sizeOfKind(box);
  const lines = (count) => 34 + LINE * Math.min(MOST_LINES, count);
  if (node?.kind === "input" && !node.map) return { width, height: lines(panel.sides[node.side]?.length ?? 1) };
  if (node?.kind === "answer") return { width, height: lines(panel.answers.names[0]?.length ?? 1) };
  return { width, height: BOX.height };
}

function topsOf(boxes, count, depth) {
  const found = [];
  let top = GAP.frame * depth + 18;
  for (let band = 0; band < count; band += 1) {
    found.push(top);
    const inside = boxes.filter((box) => box.band === band);
    const tall = Math.max(0, ...inside.map((box) => box.lane * (BOX.height + GAP.y) + box.height));
    top += inside.length ? tall + GAP.band + GAP.frame * depth : 0;
  }
  return found;
}

function around({ boxes, depth }, deepest) {
  const room = 6 * Math.max(1, deepest - depth) + 4;
  const left = Math.min(...boxes.map((box) => box.x)) - room;
  const top = Math.min(...boxes.map((box) => box.y)) - GAP.frame * Math.max(1, deepest - depth) - 4;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + room;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + room;
  return { x: left, y: top, width: right - left, height: bottom - top };
}

function offsets(widths, gap) {
  let at = 30;
  return widths.map((width) => {
    const here = at;
    at += (Number.isFinite(width) ? width : 0) + gap;
    return here;
  });
}
