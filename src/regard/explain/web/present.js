// Show mode: one screen at a time in large type, moved by keys, buttons and swipes, in step with a second window.

import { Company, companyName } from "./company.js";
import { make } from "./element.js";
import { icon } from "./icon.js";
import { helpBox } from "./keys.js";
import { change, whenChanged } from "./shared.js";
import { SpeakerSide } from "./speaker.js";

const PAUSE = 2500; // milliseconds within which the digits of a number are typed
const SWIPE = 60; // pixels
const NEAR = 120; // pixels of a player that are seen before its steps are gone through
const OVERLAP = 0.85; // of a page, when a long screen is scrolled
const TYPED_INTO = "input, select, textarea";
const OF_ITS_OWN = "[role=application]"; // maps and charts, in which arrow keys move a cursor
const FITS = [1, 0.9, 0.8, 0.72]; // sizes of letters, of which the first is taken at which all is seen
const LONG = 0.85; // and this one where it is not, even so
const PRESSED = "button, summary, a";

/**
 * The show of a page.
 * where()                the place that is shown, as a text; the number of the screen is no part of it.
 * address(screen, name)  the address of a second window of that name.
 * onmove(number)         another screen is shown.      onleave()  the show has ended.
 * onplace(where, number) the other window has gone to another place.
 */
export class Show {
  constructor({ where, address, onmove = () => {}, onleave = () => {}, onplace = () => {} }) {
    Object.assign(this, { where, address, onmove, onleave, onplace });
    this.company = new Company((message) => this.hear(message));
    this.changes = new Map();
    this.typed = "";
    // A window that was loaded in the middle of a show asks the other one where it is.
    this.asks = /[#&](show|screen)=/.test(location.hash);
    this.build();
    window.addEventListener("keydown", (event) => this.deck && this.press(event), true);
    window.addEventListener("resize", () => this.deck && this.fit());
  }

  get isOpen() {
    return Boolean(this.deck);
  }

  build() {
    const button = (label, name, act) =>
      make("button", { type: "button", title: name, "aria-label": name, onclick: act }, label);
    this.title = make("h1", { tabindex: -1, dir: "auto" });
    this.top = make("div", { class: "above" });
    this.slide = make("div", { class: "slide" });
    this.stage = make("main", { class: "stage", tabindex: -1 }, this.top, this.slide);
    this.count = make("span", { class: "count", role: "status" });
    this.bar = make("i");
    this.help = helpBox();
    this.buttons = {
      previous: button(icon("back"), "Back (←)", () => this.previous()),
      next: button(icon("on"), "On (→)", () => this.next()),
      second: button(icon("second"), "Speaker's window (s)", () => this.openSecond()),
      full: button(icon("large"), "Full screen (f)", () => this.fill()),
      help: button("?", "Keys (?)", () => this.help.showModal()),
      leave: button(icon("leave"), "Leave (Esc)", () => this.close()),
    };
    const bar = make("div", { class: "progress", "aria-hidden": "true" }, this.bar);
    const foot = make("footer", {}, this.count, ...Object.values(this.buttons));
    this.speaker = new SpeakerSide();
    this.element = make("div", { class: "show" }, this.stage, this.speaker.element, bar, foot, this.help);
    whenChanged(this.slide, (number, detail) => this.changed(number, detail));
    this.listenToTouch();
  }

  /** Shows a deck from a screen on; speaker: the name of the show whose speaker's window this is. */
  open(deck, number, speaker = null) {
    const { isOpen } = this;
    this.deck = deck;
    this.element.classList.toggle("speaks", speaker !== null);
    this.buttons.second.hidden = speaker !== null;
    document.documentElement.classList.add("shows");
    document.documentElement.classList.toggle("speaks", speaker !== null);
    if (!this.element.isConnected) document.body.append(this.element);
    this.lend(deck);
    if (!isOpen) this.speaker.begin(speaker !== null);
    this.number = null;
    this.draw(number);
    this.company.join(speaker ?? companyName());
    this.company.say(this.asks ? { hello: true } : this.at());
    this.asks = false;
  }

  /** Shows what a deck is of, and its controls, which keep the focus if they were there already. */
  lend({ facts, controls }) {
    for (const part of [...this.top.children]) if (part !== controls) part.remove();
    if (facts) this.top.prepend(facts);
    if (controls && controls.parentElement !== this.top) this.top.append(controls);
  }

  /** Ends the show; the page below is as it was. */
  close() {
    if (!this.deck) return;
    this.deck = null;
    this.help.close();
    this.company.leave();
    this.speaker.end();
    document.documentElement.classList.remove("shows", "speaks");
    this.element.remove();
    if (document.fullscreenElement) document.exitFullscreen();
    this.onleave();
  }

  at() {
    return { where: this.where(), number: this.number };
  }

  draw(number) {
    const { screens } = this.deck;
    const to = Math.max(0, Math.min(screens.length - 1, number));
    if (to === this.number) return;
    this.number = to;
    const screen = screens[to];
    this.title.textContent = screen.heading ?? screen.title;
    this.slide.className = `slide ${screen.heading ? "of-view" : (screen.kind ?? "")}`;
    this.slide.replaceChildren(this.title, screen.draw());
    this.stage.scrollTop = 0;
    const told = `${to + 1} / ${screens.length}`;
    this.count.replaceChildren(told, make("span", { class: "spoken" }, ` ${screen.title}`));
    this.bar.style.width = `${(100 * (to + 1)) / screens.length}%`;
    this.buttons.previous.disabled = to === 0;
    this.buttons.next.disabled = to === screens.length - 1;
    if (!this.top.contains(document.activeElement)) this.stage.focus({ preventScroll: true });
    this.speaker.show(screen, screens[to + 1]);
    for (const [place, detail] of this.changes) {
      const [where, shown, element] = JSON.parse(place);
      if (where === this.where() && shown === to) change(this.slide, element, detail);
    }
    this.onmove(to);
    this.fit();
  }

  /** Goes to a screen, here and in the other window. */
  go(number) {
    this.draw(number);
    this.company.say(this.at());
  }

  /** The next step of what is shown where it has steps, else the next screen. */
  next() {
    if (!this.stepped("next")) this.go(this.number + 1);
  }

  previous() {
    if (!this.stepped("previous")) this.go(this.number - 1);
  }

  stepped(way) {
    const button = this.slide.querySelector(`.steps-bar [data-step=${way}]`);
    if (!button || button.disabled || this.slide.querySelector(".player.shows-all")) return false;
    const player = button.closest(".player");
    const { top } = player.getBoundingClientRect();
    if (top > this.stage.getBoundingClientRect().bottom - NEAR) player.scrollIntoView({ block: "end" });
    else button.click();
    return true;
  }

  /** Makes letters a little smaller where the screen would be longer than the window. */
  async fit() {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const { number } = this;
    for (const size of [...FITS, LONG]) {
      document.documentElement.style.setProperty("--fit", size);
      await frame();
      await frame();
      if (number !== this.number || this.stage.scrollHeight <= this.stage.clientHeight + 2) return;
    }
  }

  /** Down a page of a screen that is longer than the window, and on from its end. */
  onward() {
    const { scrollTop, clientHeight, scrollHeight } = this.stage;
    if (scrollTop + clientHeight >= scrollHeight - 4) this.next();
    else this.stage.scrollBy({ top: clientHeight * OVERLAP });
  }

  press(event) {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open) return;
    const isWithin = target instanceof Element && this.element.contains(target);
    const isOwn = isWithin && target.closest(OF_ITS_OWN);
    if (key === "Escape" && isWithin && target.closest(`${TYPED_INTO}, ${OF_ITS_OWN}`)) this.stage.focus();
    else if (isWithin && target.closest(TYPED_INTO)) return;
    else if (isOwn && key !== "PageUp" && key !== "PageDown" && !/^[fs?]$/.test(key)) return;
    else if ((key === " " || key === "Enter") && isWithin && target.closest(PRESSED) && !this.typed) return;
    else if (!this.act(event)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** What a key does; whether it does something. */
  act({ key, shiftKey }) {
    if (/^\d$/.test(key)) return this.type(key);
    const acts = {
      ArrowRight: () => this.next(),
      PageDown: () => this.onward(),
      ArrowLeft: () => this.previous(),
      PageUp: () => this.previous(),
      Backspace: () => this.previous(),
      " ": () => (shiftKey ? this.previous() : this.onward()),
      Home: () => this.go(0),
      End: () => this.go(this.deck.screens.length - 1),
      Enter: () => this.typed && this.jump(),
      Escape: () => this.close(),
      f: () => this.fill(),
      s: () => this.openSecond(),
      "?": () => this.help.showModal(),
    };
    if (!(key in acts)) return false;
    acts[key]();
    return true;
  }

  /** A digit of the number of a screen; Enter goes there. */
  type(digit) {
    clearTimeout(this.typing);
    this.typed = (this.typed + digit).slice(-4);
    this.typing = setTimeout(() => this.forget(), PAUSE);
    this.count.textContent = `→ ${this.typed}`;
    return true;
  }

  forget() {
    this.typed = "";
    if (this.deck) this.count.textContent = `${this.number + 1} / ${this.deck.screens.length}`;
  }

  jump() {
    const number = Number(this.typed);
    this.forget();
    this.go(number - 1);
  }

  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen?.().catch(() => {});
  }

  /** The speaker's window, which goes where this one goes, and leads it. */
  openSecond() {
    if (this.element.classList.contains("speaks")) return;
    const name = companyName();
    if (this.second && !this.second.closed) {
      this.second.focus();
      return;
    }
    this.second = window.open(this.address(this.number, name), "_blank", "popup,width=1200,height=800");
    if (!this.second) this.count.textContent = "The browser has not opened the window: allow pop-ups for this page.";
  }

  /** Something was changed here by the reader. */
  changed(element, detail) {
    this.keep(this.number, element, detail);
    this.company.say({ ...this.at(), element, detail });
  }

  keep(number, element, detail) {
    const place = JSON.stringify([this.where(), number, element]);
    this.changes.set(place, { ...this.changes.get(place), ...detail });
  }

  /** What the other window says. */
  hear({ hello, where, number, element, detail, changes }) {
    if (!this.deck) return;
    if (hello) {
      this.company.say({ ...this.at(), changes: [...this.changes] });
      return;
    }
    for (const [place, known] of changes ?? []) this.changes.set(place, known);
    if (where !== this.where()) {
      this.onplace(where, number);
      return;
    }
    if (element === undefined) {
      if (changes) this.number = null; // drawn again, with what was changed
      this.draw(number);
      return;
    }
    this.keep(number, element, detail);
    if (number === this.number) change(this.slide, element, detail);
  }

  listenToTouch() {
    let from = null;
    this.stage.addEventListener("touchstart", ({ touches, target }) => {
      from = touches.length === 1 && !isMoved(target) ? [touches[0].clientX, touches[0].clientY] : null;
    });
    this.stage.addEventListener("touchend", ({ changedTouches: [touch] }) => {
      if (!from) return;
      const [across, down] = [touch.clientX - from[0], touch.clientY - from[1]];
      if (Math.abs(across) < SWIPE || Math.abs(across) < 2 * Math.abs(down)) return;
      if (across < 0) this.next();
      else this.previous();
    });
  }
}

/** Whether a finger on it moves something else than the show. */
function isMoved(target) {
  for (let element = target; element instanceof Element; element = element.parentElement) {
    if (element.matches(`${TYPED_INTO}, ${OF_ITS_OWN}`)) return true;
    if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible") return true;
  }
  return false;
}
