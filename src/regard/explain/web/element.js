// Elements from plain data. Text goes in as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;
const NAMED = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };

/** An HTML element. `given` holds attributes, and listeners under names such as onclick. */
export function make(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/** An SVG element. */
export function draw(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

/** A token in a box of its own, so that one written from right to left leaves its neighbours where they are. */
export function token(text, given = {}) {
  return make("bdi", { class: "token", ...given }, asToken(text));
}

/** A token as the terminal shows it: blanks at its ends can be seen, too. */
export function asToken(text) {
  return visible(text).replace(/^ +| +$/g, (blanks) => "␣".repeat(blanks.length));
}

/** Text whose control characters can be seen. */
export function visible(text) {
  const told = String(text).replace(HIDDEN, (c) => NAMED[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return told === "" ? "(empty)" : told;
}

/** Puts parts into a holder, unless they are what it holds. */
export function fill(holder, parts) {
  const { children } = holder;
  const isSame = parts.length === children.length && parts.every((one, place) => one === children[place]);
  if (!isSame) holder.replaceChildren(...parts);
}

/** Calls `act` with the width of an element, now and whenever it changes. */
export function whenSized(element, act) {
  let before = 0;
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (width > 0 && width !== before) {
      before = width;
      act(width);
    }
  });
  observer.observe(element);
}

/** An element that is reached by the keyboard as long as it scrolls sideways. */
export function reachable(element) {
  whenSized(element, () => {
    if (element.scrollWidth > element.clientWidth + 1) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  });
  return element;
}

/** How much larger than usual the letters of the page are: what is drawn in pixels grows with them. */
export function letterScale() {
  return Math.max(1, Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16);
}

let count = 0;

/** A name that no other element of the page has, for labels that point to elements. */
export function freshName(stem) {
  count += 1;
  return `regard-${stem}-${count}`;
}

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
