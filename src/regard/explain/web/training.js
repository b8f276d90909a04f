// One training as the page follows it: the points that came so far, how fast it goes, and what is left.

import { thinned } from "./trend.js";

const MOST = 4000; // points that are kept; of more every second one goes
const RECENT = 20; // points by which the pace is told

/** What is known of the training of a run. facts: what the list of runs says of it. */
export class Training {
  constructor(facts) {
    this.facts = facts;
    this.forget();
  }

  forget() {
    Object.assign(this, { offset: 0, mark: "", points: [], error: "", isGone: false, isTraining: false, hasMore: true });
  }

  /** What is asked for next. */
  get asked() {
    return { name: this.facts.name, offset: this.offset, mark: this.mark };
  }

  /** Takes an answer of the server, and says whether anything changed. */
  take(came) {
    const { gone = false, error = "", points = [], is_new: isNew = false } = came;
    const before = this.state;
    if (isNew) this.points = [];
    Object.assign(this, { isGone: gone, error, hasMore: came.has_more ?? false, isTraining: came.is_training ?? false });
    if (this.isWell) Object.assign(this, { offset: came.offset, mark: came.mark });
    let tokens = this.points.at(-1)?.tokens ?? 0;
    for (const point of points) {
      tokens = point.tokens ?? tokens; // an evaluation says of none; those of the step before are its own
      this.points.push({ ...point, tokens });
    }
    if (this.points.length > MOST) this.points = this.fewer();
    return isNew || points.length > 0 || before !== this.state;
  }

  get state() {
    return `${this.isGone} ${this.error} ${this.isTraining} ${this.hasMore}`;
  }

  /** Whether it is there and can be read. */
  get isWell() {
    return !this.isGone && !this.error;
  }

  /** Half of the steps and every evaluation, as long as these are not most of all. */
  fewer() {
    const isEvaluation = (point) => "valid_loss" in point;
    const count = this.points.filter(isEvaluation).length;
    if (count > MOST / 2) return thinned(this.points, MOST / 2);
    const last = this.points.length - 1;
    return this.points.filter((point, place) => isEvaluation(point) || place % 2 === 0 || place === last);
  }

  /** Everything that was measured. */
  get measures() {
    const found = new Set();
    for (const point of this.points) for (const key of Object.keys(point)) found.add(key);
    for (const axis of ["step", "tokens", "seconds"]) found.delete(axis);
    return found;
  }

  /** A measure along an axis. */
  line(x, measure) {
    const isFit = (point) => Number.isFinite(point[x]) && Number.isFinite(point[measure]);
    return this.points.filter(isFit).map((point) => [point[x], point[measure]]);
  }

  /** Tokens a second, where a step said so. */
  get speed() {
    return this.points.findLast((point) => point.tokens_per_second)?.tokens_per_second ?? null;
  }

  /** Seconds to the end of the budget at the pace of the last steps; null where nobody can tell. */
  get left() {
    const { kind, amount } = this.facts.budget ?? {};
    const axis = { seconds: "seconds", steps: "step", tokens: "tokens" }[kind];
    const last = this.points.findLast((point) => Number.isFinite(point.seconds));
    if (!axis || !last) return null;
    const rest = Math.max(0, amount - last[axis]);
    if (kind === "seconds") return rest;
    const first = this.points.slice(-RECENT).find((point) => Number.isFinite(point.seconds));
    const gone = last[axis] - first[axis];
    return gone > 0 ? (rest * (last.seconds - first.seconds)) / gone : null;
  }
}
