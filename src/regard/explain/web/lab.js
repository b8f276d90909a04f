// The page of `regard lab`: runs and worked examples at the left, a question above, the view below.

import { addressOf, readAddress } from "./address.js";
import { Board, curveControls } from "./board.js";
import { ask } from "./client.js";
import { Controls } from "./controls.js";
import { deckOfLecture, deckOfView } from "./deck.js";
import { make } from "./element.js";
import { drawLecture } from "./lecture.js";
import { drawLectures, sittingOf } from "./lectures.js";
import { counted } from "./number.js";
import { Show } from "./present.js";
import { Question } from "./question.js";
import { Side } from "./side.js";
import { Slots } from "./slots.js";
import { drawView } from "./view.js";

const PASTED = 10_000; // characters that are looked at of a text too long for a question

class Lab {
  constructor(root) {
    this.memory = {};
    this.offers = new Map();
    const looks = new Slots();
    const show = (curves) => this.go({ curves, options: this.place.options });
    this.side = new Side(looks, show, () => this.refresh());
    const onstates = (told) => this.side.beside.tell(told);
    this.board = new Board({ looks, onstates, onlist: () => this.refresh() });
    this.question = new Question((change) => this.go(this.asked(change)), (text) => this.count(text));
    this.controls = new Controls((values) => this.go(this.turned(values), true));
    this.message = make("div", { class: "message", role: "alert", hidden: true });
    this.view = make("div", { class: "shown", "aria-live": "off" });
    const present = { type: "button", class: "present", title: "Show large (p)", onclick: () => this.present(0) };
    this.large = make("button", { ...present, hidden: true }, "Show large");
    const rerun = { type: "button", class: "present", title: "Its pictures can be played with then", onclick: () => this.rerun() };
    this.anew = make("button", { ...rerun, hidden: true }, "Run it again");
    const parts = [this.question.element, this.large, this.anew, this.controls.element, this.message, this.view];
    this.main = make("main", { id: "main" }, ...parts);
    this.root = root;
    root.replaceChildren(...this.side.parts, this.main);
    this.presenter = new Show({
      where: () => this.placeAlone(),
      address: (screen, speaker) => addressOf({ ...this.place, screen, speaker }),
      onmove: (screen) => this.note(screen),
      onleave: () => this.leave(),
      onplace: (where, screen) => this.accompany(where, screen),
    });
    document.addEventListener("keydown", (event) => this.press(event));
    window.addEventListener("hashchange", () => this.runs && this.show());
    window.addEventListener("focus", () => this.runs && this.refresh());
  }

  /** Asks what there is, and shows the place of the address. */
  async start() {
    try {
      // Runs are looked into also where a notebook is broken; the page of the lectures says which.
      const taught = ask("/api/lectures").catch(() => ({ lectures: [] }));
      const asked = [ask("/api/runs"), ask("/api/examples"), taught];
      const [{ runs }, { examples }, { lectures }] = await Promise.all(asked);
      Object.assign(this, { runs, examples, lectures });
      this.side.list(runs, examples, lectures);
    } catch (error) {
      this.fail(error, () => this.start());
      return;
    }
    await this.show();
  }

  /** Asks again which runs there are: one may have been trained meanwhile. */
  async refresh() {
    const { runs } = await ask("/api/runs").catch(() => this);
    if (JSON.stringify(runs) === JSON.stringify(this.runs)) return;
    this.runs = runs;
    this.offers.clear();
    this.side.list(runs, this.examples, this.lectures);
    this.side.mark(this.place);
  }

  /** How many tokens a text has for the run that is shown; null where nobody can tell. */
  count(text) {
    return ask("/api/tokens", { run: this.place.run, text }).then(({ tokens }) => tokens, () => null);
  }

  /** The place of another question. A position belongs to the text that it was chosen in. */
  asked(change) {
    const { position, ...rest } = this.place.options;
    const options = change.text === this.place.text ? this.place.options : rest;
    return { ...this.place, options, ...change };
  }

  /** The place with other values of some controls. */
  turned(values) {
    return { ...this.place, options: { ...this.place.options, ...values } };
  }

  /** Goes to a place; quietly where the reader only turned a knob, so that Back leads to the place before. */
  go(place, quietly = false) {
    const address = addressOf(place);
    if (address === location.hash || quietly) {
      history.replaceState(null, "", address);
      this.show();
    } else {
      location.hash = address;
    }
  }

  /** Shows the place of the address. The answer to a question that was followed by another is thrown away. */
  async show() {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const address = location.hash;
    this.place = this.settled(readAddress(location.hash));
    this.side.mark(this.place);
    if (this.place.curves) {
      this.follow();
      return;
    }
    this.board.stop();
    this.main.setAttribute("aria-busy", "true");
    try {
      const found = await this.answer(asking.signal);
      // A link may have been followed of which the page will hear next.
      if (asking.signal.aborted || location.hash !== address) return;
      this.message.hidden = true;
      this.draw(found);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.fail(error, () => this.show());
    }
    this.main.setAttribute("aria-busy", "false");
  }

  /** The curves of runs, which draw themselves again as numbers come. */
  follow() {
    this.deck = null;
    this.large.hidden = this.anew.hidden = true;
    this.presenter.close();
    this.question.hide();
    this.message.hidden = true;
    this.controls.show(curveControls(this.place.options));
    this.view.inert = false;
    if (this.view.firstChild !== this.board.element) this.view.replaceChildren(this.board.element);
    this.board.show(this.place, this.runs);
    this.main.setAttribute("aria-busy", "false");
    document.title = "Learning curves · regard lab";
  }

  /** A place for an address that names none. */
  settled(place) {
    if (place.run || place.example || place.curves || place.lecture !== undefined) return place;
    const run = this.runs.find(({ error }) => !error);
    return run ? { ...place, run: run.name } : { ...place, example: Object.keys(this.examples)[0] };
  }

  async answer(signal) {
    const { run, view, text, example, lecture, options } = this.place;
    if (lecture !== undefined) {
      this.question.hide();
      return this.lectured(lecture, signal);
    }
    if (example !== undefined) {
      this.question.hide();
      return ask("/api/example", { name: example }, signal);
    }
    if (!run) throw new Error("There is no run here. Train one with: regard train my.txt --model gpt --out runs/gpt");
    if (!this.offers.has(run)) this.offers.set(run, await ask("/api/run", { run }, signal));
    signal.throwIfAborted();
    const offer = this.offers.get(run);
    this.place.text = text ?? offer.example;
    this.question.show(offer, this.place);
    return ask("/api/view", { run, view: view ?? null, text: this.place.text, options }, signal);
  }

  /** The list of lectures, or a sitting of one of them. */
  async lectured(name, signal) {
    if (name === "") return ask("/api/lectures", undefined, signal);
    const ontold = (element) => {
      if (signal.aborted) return;
      this.message.hidden = true;
      this.controls.show([]);
      this.view.replaceChildren(element);
      this.view.inert = false;
    };
    const again = this.again === name;
    this.again = null;
    return sittingOf(name, { signal, ontold, again });
  }

  draw(found) {
    this.view.inert = false;
    this.anew.hidden = true;
    const drawn = this.place.lecture === undefined ? this.drawnView(found) : this.drawnLecture(found);
    history.replaceState(null, "", addressOf(this.place)); // whole, so that it can be shared
    this.side.mark(this.place);
    this.view.replaceChildren(drawn.element);
    this.deck = drawn.deck;
    this.large.hidden = !this.deck;
    document.title = `${drawn.title} · regard lab`;
    const { screen, speaker } = this.place;
    if (screen !== undefined && this.deck) this.present(screen, speaker);
    else this.presenter.close();
  }

  drawnLecture({ lectures, sitting, is_live: isLive }) {
    this.controls.show([]);
    if (!sitting) return { element: drawLectures(lectures), title: "Lectures", deck: null };
    const { lecture: name } = this.place;
    const askView = isLive ? (place, values) => ask("/api/lecture/view", { name, place, values }) : null;
    this.anew.hidden = isLive;
    const element = drawLecture(sitting, { askView, onshow: (number) => this.present(number) });
    return { element, title: sitting.title, deck: () => deckOfLecture(sitting, { askView }) };
  }

  /** Has the lecture run anew. */
  rerun() {
    this.again = this.place.lecture;
    this.show();
  }

  drawnView(view) {
    const { run, text, example, options } = this.place;
    const of = example === undefined ? { run, view: this.place.view ?? null, text, options } : { example };
    const rows = (panel, row, count, more = {}) =>
      ask("/api/row", { of, panel, row, count, ...more }).then(({ weights }) => weights);
    const onask = example === undefined ? (change) => this.go(this.asked(change)) : null;
    const memory = (this.memory[`${example ?? ""} ${view.view}`] ??= {});
    if (this.question.choose(view.view)) this.place.view = view.view;
    this.controls.show(view.controls ?? []);
    const given = { memory, exactRows: rows, onask };
    const deck = () => deckOfView(view, { ...given, controls: this.controls.element });
    return { element: drawView(view, given), title: view.title, deck };
  }

  /** Shows what is on the page large, from a screen on. */
  present(screen, speaker = null) {
    if (!this.deck) return;
    this.place = { ...this.place, screen, speaker: speaker ?? undefined };
    this.root.hidden = true;
    this.presenter.open(this.deck(), screen, speaker);
  }

  /** The page as it was before the show; its controls go back to their place. */
  leave() {
    const { screen, speaker, ...place } = this.place;
    this.place = place;
    history.replaceState(null, "", addressOf(place));
    this.root.hidden = false;
    this.large.after(this.controls.element);
  }

  /** Another screen of the same place. */
  note(screen) {
    this.place = { ...this.place, screen };
    history.replaceState(null, "", addressOf(this.place));
  }

  /** Goes where the other window of the show has gone. */
  accompany(where, screen) {
    const { speaker } = this.place;
    this.go({ ...readAddress(where), screen, speaker }, true);
  }

  /** The address of the place without what belongs to the show. */
  placeAlone() {
    const { screen, speaker, ...place } = this.place;
    return addressOf(place);
  }

  press({ key, target, ctrlKey, altKey, metaKey }) {
    const isTyping = target instanceof Element && target.closest("input, select, textarea");
    if (key !== "p" || isTyping || ctrlKey || altKey || metaKey || this.presenter.isOpen) return;
    this.present(0);
  }

  /** Says what went wrong; the view before stays, greyed. */
  fail(error, again) {
    const button = (label, act) => make("button", { type: "button", onclick: act }, label);
    const letters = [...(this.place?.text ?? "")];
    const first = (count) => () => this.go(this.asked({ text: letters.slice(0, count).join("") }));
    const isHuge = error.isTooMuch && !error.fits && letters.length > PASTED;
    const buttons = [
      error.isGone ? button("Try again", again) : null,
      error.fits ? button(`Look at the first ${counted(error.most, "token")}`, first(error.fits)) : null,
      isHuge ? button(`Look at the first ${counted(PASTED, "character")}`, first(PASTED)) : null,
    ];
    const stale = this.view.hasChildNodes() ? make("p", { class: "unit" }, "Below, in grey, is the view before.") : null;
    const parts = [make("p", { class: "failure" }, error.message), ...buttons, stale];
    this.message.replaceChildren(...parts.filter(Boolean));
    this.message.hidden = false;
    this.view.inert = true; // what is below answers another question
    this.main.setAttribute("aria-busy", "false");
  }
}

new Lab(document.getElementById("lab")).start();
