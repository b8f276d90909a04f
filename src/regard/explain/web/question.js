// What is asked of a run: a text and a kind of view.

import { freshName, make, visible } from "./element.js";
import { counted } from "./number.js";

const PAUSE = 300; // milliseconds after a key before tokens are counted

/**
 * The text box and the choice of views. onask(change) gets the text, the view, or both.
 * oncount(text) tells how many tokens a text has; null where it is none.
 */
export class Question {
  constructor(onask, oncount) {
    this.onask = onask;
    this.oncount = oncount;
    const names = { text: freshName("text"), view: freshName("view") };
    this.text = make("textarea", { id: names.text, rows: 2, dir: "auto", spellcheck: "false" });
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.submit(event);
    });
    this.text.addEventListener("input", () => this.countSoon());
    const choose = () => onask({ text: this.text.value, view: this.view.value, options: {} });
    this.view = make("select", { id: names.view, onchange: choose });
    this.about = make("p", { class: "unit" });
    this.size = make("small", { class: "unit size", role: "status" });
    const label = (name, text) => make("label", { for: names[name] }, text);
    this.element = make(
      "form",
      { class: "question", "aria-label": "Question", onsubmit: (event) => this.submit(event) },
      make("div", { class: "field words" }, label("text", "Text"), this.text, this.size),
      make("div", { class: "field" }, label("view", "View"), this.view),
      make("button", { type: "submit", class: "ask" }, "Look inside"),
      this.about,
    );
  }

  hide() {
    this.element.hidden = true;
  }

  /** Shows what a run offers, and the text of a place. */
  show({ views, limits }, { text, view }) {
    this.element.hidden = false;
    this.views = views;
    this.limits = limits;
    this.view.replaceChildren(...Object.keys(views).map((name) => make("option", { value: name }, visible(name))));
    if (document.activeElement !== this.text || this.text.value === "") this.text.value = text;
    this.choose(view ?? Object.keys(views)[0]);
  }

  /** Marks the view that is shown, and says whether it is one of those that can be chosen. */
  choose(name) {
    const isOffered = !this.element.hidden && name in this.views;
    if (isOffered) this.view.value = name;
    this.about.textContent = this.views?.[this.view.value] ?? "";
    this.countSoon();
    return isOffered;
  }

  countSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.count(), PAUSE);
  }

  /** Says how long the text is, and how long it may be. */
  async count() {
    const text = this.text.value;
    const tokens = this.element.hidden ? null : await this.oncount(text);
    if (text !== this.text.value) return;
    const most = this.limits?.[this.view.value];
    const isKnown = tokens !== null && most !== undefined;
    const told = () => `${counted(tokens, "token")}; this view takes at most ${most.toLocaleString("en")}`;
    this.size.textContent = isKnown ? told() : "";
    this.size.classList.toggle("over", isKnown && tokens > most);
  }

  submit(event) {
    event.preventDefault();
    this.onask({ text: this.text.value, view: this.view.value });
  }
}
