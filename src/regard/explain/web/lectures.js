// The lectures of the lab: their list, and a sitting, which the server makes when it is first asked for.

import { addressOf } from "./address.js";
import { ask } from "./client.js";
import { make } from "./element.js";

const BETWEEN = 400; // milliseconds between two looks at how far a sitting is

/** All of them with their questions, as links. */
export function drawLectures(lectures) {
  const item = ({ name, title, question, is_ready: isReady }) => {
    const state = isReady ? null : make("small", { class: "unit" }, "is run when it is opened");
    const link = make("a", { href: addressOf({ lecture: name }) }, title);
    return make("li", {}, make("h2", {}, link), make("p", { dir: "auto" }, question), state);
  };
  const none = lectures.length ? null : make("p", {}, "There are no lectures in this installation.");
  const list = make("ol", { class: "lectures" }, ...lectures.map(item));
  return make("article", { "aria-label": "Lectures" }, make("h1", { class: "title" }, "Lectures"), none ?? list);
}

/** The sitting of a lecture, once there is one. ontold(element) shows how far it is. again: it is run anew. */
export async function sittingOf(name, { signal, ontold, again = false }) {
  const progress = make("progress", { max: 1, value: 0, "aria-label": "Progress" });
  const words = make("p", { role: "status" });
  const element = make("div", { class: "waiting" }, words, progress);
  for (let isAgain = again; ; isAgain = false) {
    const told = await ask("/api/lecture", { name, again: isAgain }, signal);
    if (told.sitting) return told;
    progress.value = told.of ? told.screen / told.of : 0;
    const now = told.screen ? `: screen ${told.screen} of ${told.of} has run` : "";
    const other = told.waits_for ? `It waits until ${told.waits_for} has run.` : "";
    words.textContent = other || `This lecture is being run on this machine${now}.`;
    ontold(element);
    await new Promise((done) => setTimeout(done, BETWEEN));
    signal.throwIfAborted();
  }
}
