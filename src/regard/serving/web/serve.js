// The page on which served runs are tried: texts as they are written, and the answers of all other tasks.

import { make, freshName } from "/web/element.js";

const NUMBERS = [
  ["max_tokens", "tokens", 64, 1],
  ["temperature", "temperature", 0.8, 0.1],
  ["top_p", "top-p", 1, 0.05],
  ["seed", "seed", 0, 1],
];

let stop = null;

start();

async function start() {
  const main = document.querySelector("#serve");
  const key = field("key", make("input", { type: "password", autocomplete: "off" }));
  const model = field("model", make("select"));
  const prompt = field("prompt", make("textarea", { rows: 4 }), "wide");
  const numbers = NUMBERS.map(([name, label, value, step]) => [
    name,
    field(label, make("input", { type: "number", value, step, min: 0 })),
  ]);
  const answer = make("div", { class: "written", "aria-live": "polite" });
  const said = make("p", { class: "said" });
  const go = make("button", { class: "go", type: "submit" }, "Write");
  const halt = make("button", { type: "button", onclick: () => stop?.abort(), disabled: true }, "Stop");
  const asked = () => ({
    key: key.input.value,
    model: model.input.value,
    prompt: prompt.input.value,
    numbers: Object.fromEntries(numbers.map(([name, one]) => [name, Number(one.input.value)])),
  });
  const form = make(
    "form",
    { onsubmit: (event) => (event.preventDefault(), write(asked(), runs, { answer, said, go, halt })) },
    make("div", { class: "asked" }, model.box, ...numbers.map(([, one]) => one.box), key.box),
    prompt.box,
    make("div", { class: "asked" }, go, halt),
  );
  main.append(form, answer, said);
  const runs = new Map();
  const fill = async () => {
    const found = await listed(key.input.value);
    key.box.hidden = found !== null;
    if (found === null) return;
    for (const one of found) runs.set(one.id, one.regard ?? undefined);
    model.input.replaceChildren(...found.map((one) => make("option", { value: one.id }, one.id)));
  };
  key.input.addEventListener("change", fill);
  key.box.hidden = true;
  await fill();
}

function field(label, input, kind = "") {
  const name = freshName("field");
  input.id = name;
  return { input, box: make("div", { class: `field ${kind}` }, make("label", { for: name }, label), input) };
}

function headers(key) {
  return { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
}

/** The served runs; null where a key is needed. */
async function listed(key) {
  const answer = await fetch("/v1/models", { headers: headers(key) });
  return answer.ok ? (await answer.json()).data : null;
}

async function write(asked, runs, shown) {
  stop = new AbortController();
  shown.go.disabled = true;
  shown.halt.disabled = false;
  shown.said.className = "said";
  shown.said.textContent = "";
  shown.answer.replaceChildren(make("span", { class: "given" }, asked.prompt));
  try {
    await answered(asked, runs, shown);
  } catch (error) {
    if (error.name === "AbortError") shown.said.textContent = "stopped";
    else {
      shown.said.className = "said bad";
      shown.said.textContent = error.message;
    }
  } finally {
    shown.go.disabled = false;
    shown.halt.disabled = true;
  }
}

/** Texts are streamed, all else is predicted; of a run that was not in memory it is known once it was asked. */
async function answered(asked, runs, shown) {
  const completes = () => runs.get(asked.model)?.completes;
  if (completes() === false) return predicted(asked, shown);
  try {
    return await streamed(asked, shown);
  } catch (error) {
    if (error.name === "AbortError" || completes() !== undefined) throw error;
    for (const one of (await listed(asked.key)) ?? []) runs.set(one.id, one.regard ?? undefined);
    if (completes() !== false) throw error;
    return predicted(asked, shown);
  }
}

async function posted(path, body, key) {
  const answer = await fetch(path, {
    method: "POST",
    headers: headers(key),
    body: JSON.stringify(body),
    signal: stop.signal,
  });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  return answer;
}

async function predicted(asked, shown) {
  const answer = await posted("/v1/predict", { model: asked.model, input: [asked.prompt] }, asked.key);
  const [found] = (await answer.json()).data;
  shown.answer.append(make("p", {}, found.text));
  for (const [name, chance] of Object.entries(found.probabilities ?? {})) {
    shown.answer.append(make("p", { class: "unit" }, `${name} ${(100 * chance).toFixed(1)} %`));
  }
}

/** Text as it comes. Everything goes in as text, never as HTML. */
async function streamed(asked, shown) {
  const body = { model: asked.model, prompt: asked.prompt, ...asked.numbers, stream: true };
  const begun = performance.now();
  const answer = await posted("/v1/completions", { ...body, stream_options: { include_usage: true } }, asked.key);
  let usage = null;
  for await (const event of events(answer.body)) {
    if (event.error) throw new Error(event.error.message);
    for (const choice of event.choices) shown.answer.append(choice.text);
    usage = event.usage ?? usage;
  }
  const seconds = (performance.now() - begun) / 1000;
  const count = usage?.completion_tokens ?? 0;
  shown.said.textContent = `${count} tokens in ${seconds.toFixed(2)} s, ${(count / seconds).toFixed(0)} a second`;
}

/** The events of a stream, each as an object. */
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}
