// Where the reader is, kept in the address of the page, so that a link leads to the same picture.

const NAMES = ["run", "view", "text", "example", "lecture", "speaker"];

/**
 * A place: run, view, text and options; or an example; or a lecture, "" for the list of them; or the runs whose curves
 * are shown. screen: of the show, from 0 on; speaker: the name of the show whose speaker's window it is.
 */
export function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const place = { options: {} };
  for (const name of NAMES) if (given.has(name)) place[name] = given.get(name);
  if (given.has("show")) [place.lecture, place.screen] = [given.get("show"), 0];
  if (given.has("screen")) place.screen = Math.max(0, Math.floor(Number(given.get("screen")) || 1) - 1);
  if (given.has("curves")) place.curves = given.getAll("curves").filter(Boolean);
  try {
    const options = JSON.parse(given.get("options") ?? "{}");
    if (options && typeof options === "object" && !Array.isArray(options)) place.options = options;
  } catch {
    // An address that somebody cut is still good for what is left of it.
  }
  return place;
}

/** The address of a place. A lecture that is shown large is `show`. */
export function addressOf({ run, view, text, example, lecture, curves, screen, speaker, options = {} }) {
  const told = new URLSearchParams();
  const isShown = screen !== undefined;
  const named = { run, view, text, example, [isShown ? "show" : "lecture"]: lecture };
  for (const [name, value] of Object.entries(named)) {
    if (value !== undefined && value !== null) told.set(name, value);
  }
  if (curves) for (const name of curves.length ? curves : [""]) told.append("curves", name);
  if (Object.keys(options).length) told.set("options", JSON.stringify(options));
  if (isShown) told.set("screen", screen + 1);
  if (isShown && speaker) told.set("speaker", speaker);
  return `#${told}`;
}
