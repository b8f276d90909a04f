// What a reader changes in an element, for a second window that shows the same.

const CHANGED = "regard-changed";
const TOLD = "regard-told";

/** Tells whoever shows the page elsewhere what the reader has changed in an element. */
export function tell(element, change) {
  element.dispatchEvent(new CustomEvent(CHANGED, { bubbles: true, detail: change }));
}

/** Calls act(change) when the same was changed elsewhere. */
export function whenTold(element, act) {
  element.setAttribute("data-shared", "");
  element.addEventListener(TOLD, (event) => act(event.detail));
}

/** Calls act(number, change) for whatever is changed below an element; number: which of its elements it was. */
export function whenChanged(root, act) {
  root.addEventListener(CHANGED, (event) => act(sharedIn(root).indexOf(event.target), event.detail));
}

/** Hands on what was changed elsewhere in the element of a number. */
export function change(root, number, detail) {
  sharedIn(root)[number]?.dispatchEvent(new CustomEvent(TOLD, { detail }));
}

function sharedIn(root) {
  return [...root.querySelectorAll("[data-shared]")];
}
