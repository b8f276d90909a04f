// Nodes of prose and formulas as elements: [tag, {attributes}, ...children], children being texts or nodes.
//
// The lists are those of `charts/markup.py`. What is not on them is not made: its words stay, and nothing else of it.

import { make, reachable } from "./element.js";

const MATH = "http://www.w3.org/1998/Math/MathML";
const SVG = "http://www.w3.org/2000/svg";
const listed = (names) => new Set(names.split(" "));
const HTML_TAGS = listed(
  "a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr img li ol p pre span strong sub sup table tbody td th thead tr ul",
);
const MATH_TAGS = listed(
  "math mfrac mi mn mo mover mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover",
);
const ATTRIBUTES = listed(
  "accent alt class columnalign dir display displaystyle form href linethickness lspace mathvariant maxsize minsize movablelimits rel rspace scope src start stretchy symmetric title width",
);
// What charts are drawn with: no link, no style, no text of another kind.
const SVG_TAGS = listed("svg g title path rect circle ellipse line polyline polygon text tspan");
const SVG_ATTRIBUTES = listed(
  "viewBox width height x y x1 y1 x2 y2 cx cy r rx ry d points transform fill fill-opacity stroke stroke-width stroke-opacity stroke-dasharray stroke-linejoin stroke-linecap opacity text-anchor dominant-baseline font-size font-weight font-family font-style shape-rendering role aria-label xml:space",
);
const ADDRESS = /^(?!\/|\\|[A-Za-z][A-Za-z0-9+.-]*:)/; // relative, or a place of the page
const WEB = /^https?:\/\/[^/\\]/i;
const UNSEEN = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029\ufeff]/;
const LOWERED = 0.12; // of the size of letters: how far a font for formulas lowers what stands below

/** Nodes as elements, one after the other. */
export function built(nodes) {
  return (nodes ?? []).map((node) => elementOf(node));
}

/** A node as an element; a text as itself. */
export function elementOf(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const [tag, attributes, ...children] = node;
  const isMath = MATH_TAGS.has(tag);
  if (!isMath && !HTML_TAGS.has(tag)) return wordsOf(children);
  const element = isMath ? document.createElementNS(MATH, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (isAllowed(name, String(value))) element.setAttribute(name, String(value));
  }
  // Elsewhere opens beside the page, which would lose what the reader chose.
  if (tag === "a" && WEB.test(element.getAttribute("href") ?? "")) element.setAttribute("target", "_blank");
  if (tag === "math") noteFont();
  element.append(...children.map((child) => elementOf(child)));
  const mayScroll = tag === "div" || tag === "pre" || (tag === "math" && element.getAttribute("display") === "block");
  return mayScroll ? reachable(element) : element;
}

/** A picture in SVG, of which shapes and words alone are taken; null where the text is no such picture. */
export function svgOf(text) {
  const read = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return read?.localName === "svg" && read.namespaceURI === SVG ? shapeOf(read) : null;
}

function shapeOf(read) {
  const element = document.createElementNS(SVG, read.localName);
  for (const { name, value } of read.attributes) {
    if (SVG_ATTRIBUTES.has(name) && !/url\(/i.test(value)) element.setAttribute(name, value);
  }
  for (const child of read.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) element.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && SVG_TAGS.has(child.localName)) element.append(shapeOf(child));
  }
  return element;
}

function wordsOf(children) {
  const parts = document.createDocumentFragment();
  parts.append(...children.map((child) => elementOf(child)));
  return parts;
}

function isAllowed(name, value) {
  if (!ATTRIBUTES.has(name)) return false;
  if (name === "href") return !UNSEEN.test(value) && (ADDRESS.test(value) || WEB.test(value));
  if (name === "src") return !UNSEEN.test(value) && ADDRESS.test(value);
  return true;
}

let isNoted = false;

/** Without a font for formulas a browser hardly lowers what stands below: the style sheet does it then. */
function noteFont() {
  if (isNoted || !document.body) return;
  isNoted = true;
  const part = (name, ...inside) => {
    const element = document.createElementNS(MATH, name);
    element.append(...inside);
    return element;
  };
  const [base, below] = [part("mi", "x"), part("mi", "x")];
  const held = make("div", { class: "regard spoken", "aria-hidden": "true" }, part("math", part("msub", base, below)));
  document.body.append(held);
  const [whole, small] = [base.getBoundingClientRect(), below.getBoundingClientRect()];
  const size = Number.parseFloat(getComputedStyle(base).fontSize);
  const smaller = (whole.height - small.height) / 2; // both boxes in the middle of one line
  const middle = (box) => (box.top + box.bottom) / 2;
  document.documentElement.classList.toggle("plain-math", middle(small) - middle(whole) - smaller / 2 < LOWERED * size);
  held.remove();
}
