// Where the reader is, kept in the address of the page, so that a link leads to the same picture.

/** A place: run, view, text and options; or an example; or the runs whose curves are shown. */
export function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const place = { options: {} };
  for (const name of ["run", "view", "text", "example"]) if (given.has(name)) place[name] = given.get(name);
  if (given.has("curves")) place.curves = given.getAll("curves").filter(Boolean);
  try {
    const options = JSON.parse(given.get("options") ?? "{}");
    if (options && typeof options === "object" && !Array.isArray(options)) place.options = options;
  } catch {
    // An address that somebody cut is still good for what is left of it.
  }
  return place;
}

/** The address of a place. */
export function addressOf({ run, view, text, example, curves, options = {} }) {
  const told = new URLSearchParams();
  for (const [name, value] of Object.entries({ run, view, text, example })) {
    if (value !== undefined && value !== null) told.set(name, value);
  }
  if (curves) for (const name of curves.length ? curves : [""]) told.append("curves", name);
  if (Object.keys(options).length) told.set("options", JSON.stringify(options));
  return `#${told}`;
}
