// Runs by what a reader typed: words of their names, and settings, such as lr>0.001 d_model=128 gpt.

const TERM = /^([\w.]+)(<=|>=|!=|=|<|>)(.+)$/;
const COMPARED = {
  "=": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

/**
 * The runs that fit every term of a text, and what is wrong with the text: a setting that no run has.
 * A setting is named as in --set (train.lr) or by its last part (lr); model, task and name are those of the run.
 */
export function filtered(runs, text) {
  const terms = text.trim().split(/\s+/).filter(Boolean).map(termOf);
  const unknown = terms.find(({ key }) => key && runs.length && !runs.some((run) => valueOf(run, key) !== undefined));
  return {
    found: runs.filter((run) => terms.every((term) => fits(run, term))),
    wrong: unknown ? `no run here has a setting ${unknown.key}` : "",
  };
}

function termOf(text) {
  const parts = TERM.exec(text);
  return parts ? { key: parts[1], sign: parts[2], wanted: parts[3] } : { word: text.toLowerCase() };
}

function fits(run, { key, sign, wanted, word }) {
  if (word !== undefined) {
    return [run.label, run.name, run.model, run.task].some((told) => String(told ?? "").toLowerCase().includes(word));
  }
  const value = valueOf(run, key);
  if (value === undefined) return false;
  const areNumbers = typeof value !== "boolean" && value !== "" && isNumber(value) && isNumber(wanted);
  const pair = areNumbers ? [Number(value), Number(wanted)] : [value, wanted].map((one) => String(one).toLowerCase());
  return COMPARED[sign](...pair);
}

function isNumber(text) {
  return Number.isFinite(Number(text));
}

/** The value of a setting of a run by its whole name or its last part. */
export function valueOf(run, key) {
  if (key === "model" || key === "task" || key === "name") return run[key === "name" ? "label" : key];
  const settings = run.settings ?? {};
  if (key in settings) return settings[key];
  const whole = Object.keys(settings).find((name) => name.slice(name.indexOf(".") + 1) === key);
  return whole === undefined ? undefined : settings[whole];
}
