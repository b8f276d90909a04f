// The curves of runs, while they train and after: a chart for each measure of each task, followed as numbers come.

import { ask } from "./client.js";
import { Chart } from "./curves.js";
import { fill, make, visible } from "./element.js";
import { drawListing } from "./listing.js";
import { counted, short } from "./number.js";
import { Training } from "./training.js";
import { smoothed, thinned } from "./trend.js";

const SOON = 1500; // milliseconds between two questions while a run trains
const LATER = 6000; // and while none does
const LISTED = 12_000; // between two looks for other runs
const MOST_RUNS = 60; // that are drawn together
const MOST_DRAWN = 1200; // points of a line
const AXES = { step: "steps", tokens: "tokens seen", seconds: "seconds of training" };
const FIRST = ["valid_loss", "loss"];
const FURTHER = ["rate", "gradient_norm", "tokens_per_second"];
const NOISY = 30; // points of a line from which on it is smoothed: of a few evaluations every one counts
const TOLD = {
  loss: "training loss",
  valid_loss: "held-out loss",
  rate: "learning rate",
  tokens_per_second: "tokens a second",
};

/** What can be asked of curves otherwise, with what is asked now. */
export function curveControls(options) {
  const { x, log_x: logX, log_y: logY, smooth, more } = settled(options);
  return [
    { name: "x", label: "by", kind: "choice", value: x, values: Object.keys(AXES) },
    { name: "smooth", label: "smoothing", kind: "range", value: smooth, low: 0, high: 0.99, step: 0.01 },
    { name: "log_x", label: "x in powers of ten", kind: "toggle", value: logX },
    { name: "log_y", label: "y in powers of ten", kind: "toggle", value: logY },
    { name: "more", label: "rate, gradient and speed too", kind: "toggle", value: more },
  ];
}

/** Options that somebody may have written by hand, each within its bounds. */
function settled({ x, log_x, log_y, smooth, more }) {
  const held = Math.min(0.99, Math.max(0, Number(smooth) || 0));
  return { x: x in AXES ? x : "step", log_x: log_x === true, log_y: log_y === true, smooth: held, more: more === true };
}

/** looks: the colours of runs. onstates(told by name) hears how runs go, onlist() when it is time to look for others. */
export class Board {
  constructor({ looks, onstates, onlist }) {
    Object.assign(this, { looks, onstates, onlist, trainings: new Map(), charts: new Map(), memory: {} });
    const title = "Curves of trainings";
    this.said = make("div", { class: "said", role: "status" });
    this.body = make("div", { class: "tasks" });
    const head = make("header", {}, make("h2", {}, title));
    this.element = make("article", { class: "view board", "aria-label": title }, head, this.said, this.body);
  }

  /** Draws the runs of a place, and goes on following them until `stop`. runs: everything that is known. */
  show({ curves, options }, runs) {
    this.options = settled(options);
    this.chosen = curves.slice(0, MOST_RUNS);
    this.leftOut = curves.length - this.chosen.length;
    const facts = new Map(runs.map((run) => [run.name, run]));
    for (const name of this.chosen) {
      const known = facts.get(name);
      if (!this.trainings.has(name)) this.trainings.set(name, new Training(known ?? { name, label: name }));
      else if (known) this.trainings.get(name).facts = known;
    }
    this.draw();
    this.isOn = true;
    this.listed ??= Date.now();
    this.next(0);
  }

  stop() {
    this.isOn = false;
    clearTimeout(this.timer);
  }

  next(pause) {
    clearTimeout(this.timer);
    if (this.isOn) this.timer = setTimeout(() => this.follow(), pause);
  }

  /** Asks what came since, draws it, and asks again after a while; at once where more is there. */
  async follow() {
    if (document.hidden || !this.chosen.length) return this.next(SOON);
    const asked = this.chosen.map((name) => this.trainings.get(name));
    const round = (this.round = {});
    try {
      const { runs } = await ask("/api/progress", { runs: asked.map((one) => one.asked) });
      if (this.round !== round || !this.isOn) return undefined;
      const changed = asked.filter((one) => one.take(runs[one.facts.name] ?? { gone: true }));
      if (changed.length || this.failure) {
        this.failure = "";
        this.draw();
      }
    } catch (error) {
      if (this.round !== round || !this.isOn) return undefined;
      this.failure = `${error.message} What is drawn is what came before.`;
      this.tell();
      return this.next(LATER);
    }
    if (Date.now() - this.listed > LISTED) {
      this.listed = Date.now();
      this.onlist();
    }
    const isBusy = asked.some(({ isTraining }) => isTraining);
    return this.next(asked.some((one) => one.isWell && one.hasMore) ? 0 : isBusy ? SOON : LATER);
  }

  get drawn() {
    return this.chosen.map((name) => this.trainings.get(name)).filter(({ isWell, points }) => isWell && points.length);
  }

  /** Everything again; charts that are there take the new numbers, so that nothing that is pointed at is lost. */
  draw() {
    const tasks = new Map();
    for (const training of this.drawn) {
      const task = training.facts.task ?? "";
      tasks.set(task, [...(tasks.get(task) ?? []), training]);
    }
    const used = new Set();
    const sections = [...tasks].map(([task, some]) => this.section(task, some, used));
    for (const key of this.charts.keys()) if (!used.has(key)) this.charts.delete(key);
    fill(this.body, sections);
    this.tell();
    this.onstates(new Map(this.chosen.map((name) => [name, stateOf(this.trainings.get(name))])));
  }

  section(task, some, used) {
    const measures = this.measuresOf(some);
    const key = `task ${task}`;
    used.add(key);
    const section = this.kept(key, () => {
      const parts = {
        heading: make("h3", {}),
        unlike: make("p", { class: "caveat" }),
        panels: make("div", { class: "panels" }),
        ends: make("section", { class: "panel listing-panel", "aria-label": "Runs" }),
      };
      return { ...parts, element: make("section", { class: "task" }, ...Object.values(parts)) };
    });
    section.heading.textContent = `${task || "no task"}: ${counted(some.length, "run")}`;
    section.unlike.textContent = unlike(some);
    section.unlike.hidden = !section.unlike.textContent;
    fill(section.panels, measures.map((measure) => this.chart(task, measure, some, used)));
    this.ends(section.ends, task, some);
    return section.element;
  }

  kept(key, make_) {
    if (!this.charts.has(key)) this.charts.set(key, make_());
    return this.charts.get(key);
  }

  measuresOf(some) {
    const every = new Set(some.flatMap((one) => [...one.measures]));
    const scores = [...every].filter((name) => name.startsWith("valid_") && name !== "valid_loss").sort();
    const further = this.options.more ? FURTHER : [];
    return [...FIRST, ...scores, ...further].filter((name) => every.has(name));
  }

  /** The chart of a measure of a task. */
  chart(task, measure, some, used) {
    const { x, log_x: xLog, log_y: yLog, smooth } = this.options;
    const [lines, behind, looks] = [{}, {}, {}];
    for (const training of some) {
      const raw = thinned(training.line(x, measure), MOST_DRAWN);
      if (!raw.length) continue;
      const name = training.facts.label;
      const isNoisy = raw.length > NOISY;
      lines[name] = smoothed(raw, isNoisy ? smooth : 0);
      if (smooth && isNoisy) behind[name] = raw;
      looks[name] = this.looks.of(training.facts.name);
    }
    const title = TOLD[measure] ?? measure.replace("valid_", "held-out ").replaceAll("_", " ");
    const panel = { title, lines, behind, looks, x: AXES[x], x_log: xLog, y_log: yLog };
    const key = `chart ${task} ${measure}`;
    used.add(key);
    const there = this.charts.get(key);
    if (there) there.chart.show(panel);
    const made = this.kept(key, () => {
      const chart = new Chart(panel);
      const given = { class: "panel curves-panel small", "aria-label": title };
      return { chart, element: make("section", given, make("h4", {}, title), chart.element) };
    });
    return made.element;
  }

  /** A table of where every run stands; drawn again only where it says something else. */
  ends(holder, task, some) {
    const columns = ["run", "now", "model", "step#", "tokens#", "evaluations#", "last loss#", "lowest loss#"];
    const rows = some.map(endOf);
    const told = JSON.stringify(rows);
    if (holder.told === told) return;
    holder.told = told;
    const hadFocus = holder.contains(document.activeElement);
    const memory = (this.memory[task] ??= {});
    holder.replaceChildren(drawListing({ columns, rows, title: `Runs of ${task}` }, { memory }));
    if (hadFocus) holder.querySelector("button")?.focus();
  }

  /** What there is to say beside the charts. */
  tell() {
    const all = this.chosen.map((name) => this.trainings.get(name));
    const names = (some) => some.map(({ facts }) => visible(facts.label)).join(", ");
    const empty = all.filter(({ isWell, points, hasMore }) => isWell && !points.length && !hasMore);
    const gone = all.filter(({ isGone }) => isGone);
    const broken = all.filter(({ error }) => error);
    const lines = [
      this.failure,
      all.length ? "" : "No run is chosen.",
      this.leftOut > 0 ? `The first ${MOST_RUNS} runs are drawn, and ${this.leftOut} are not.` : "",
      empty.length ? `Nothing was measured while training: ${names(empty)}.` : "",
      gone.length ? `Not there any more: ${names(gone)}.` : "",
      ...broken.map(({ error }) => visible(error)),
    ].filter(Boolean);
    const told = lines.join("\n");
    if (told === this.said.told) return;
    this.said.told = told;
    this.said.replaceChildren(...lines.map((line) => make("p", { class: "unit" }, line)));
  }
}

/** Where a training stands, as a row of a table. */
function endOf(training) {
  const losses = training.line("step", "valid_loss").map(([, loss]) => loss);
  const { step = null, tokens = null } = training.points.at(-1);
  const least = losses.length ? losses.reduce((a, b) => Math.min(a, b)) : null;
  const { label, model = "" } = training.facts;
  return [label, stateOf(training) || "ended", model, step, tokens, losses.length, losses.at(-1) ?? null, least];
}

/** How a training goes, in few words; nothing of one that does not. */
export function stateOf(training) {
  if (training.isGone) return "not there any more";
  if (!training.isTraining) return "";
  const { speed, left } = training;
  const parts = ["training", speed ? `${short(speed)} tokens/s` : "", left === null ? "" : `${spanOf(left)} left`];
  return parts.filter(Boolean).join(", ");
}

function spanOf(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

/** That runs of a task did not learn from the same data, where they did not. */
function unlike(some) {
  const found = new Map();
  for (const { facts } of some) {
    const [hash = "", told = ""] = facts.data ?? [];
    const known = found.get(hash) ?? { told, names: [] };
    known.names.push(visible(facts.label));
    found.set(hash, known);
  }
  if (found.size < 2) return "";
  const part = ({ told, names }) => `${names.join(", ")} on ${visible(told || "data unknown")}`;
  const parts = [...found.values()].map(part);
  return `Not of the same data or tokens, so that the curves do not compare the models: ${parts.join("; ")}.`;
}
