// What the speaker sees beside the screen: the notes, the next screen, and how late it is.

import { make } from "./element.js";

const SECOND = 1000;

/** The side of the speaker's window. */
export class SpeakerSide {
  constructor() {
    this.time = make("span", { class: "time" });
    this.passed = make("span", { class: "passed" });
    const again = make("button", { type: "button", onclick: () => this.begin(true) }, "from zero");
    const clock = make("p", { class: "clock" }, this.time, this.passed, again);
    this.notes = make("div", { class: "notes", tabindex: 0, role: "region", "aria-label": "Notes" });
    this.next = make("div", { class: "preview", inert: true });
    const heading = (text) => make("h2", {}, text);
    this.element = make("aside", { class: "speaker", hidden: true }, clock, heading("Notes"), this.notes);
    this.element.append(heading("Next"), this.next);
  }

  /** Counts the time from now on, where this is the speaker's window. */
  begin(isSpeaker) {
    this.end();
    this.element.hidden = !isSpeaker;
    if (!isSpeaker) return;
    this.begun = Date.now();
    this.tick();
    this.timer = setInterval(() => this.tick(), SECOND);
  }

  end() {
    clearInterval(this.timer);
  }

  tick() {
    const seconds = Math.floor((Date.now() - this.begun) / SECOND);
    const two = (value) => String(value).padStart(2, "0");
    this.passed.textContent = `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
    this.time.textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }

  /** Shows the notes of a screen, and the one after it. */
  show({ notes }, next) {
    if (this.element.hidden) return;
    const parts = (notes || "No notes.").split(/\n{2,}/).map((part) => make("p", { dir: "auto" }, part));
    this.notes.replaceChildren(...parts);
    this.notes.scrollTop = 0;
    const title = next ? make("h3", { dir: "auto" }, next.title) : make("p", { class: "unit" }, "This is the last one.");
    this.next.replaceChildren(title, ...(next ? [next.draw()] : []));
  }
}
