// What may be asked, from the server's own description of itself. Nothing is fetched from anywhere else.

import { make } from "/web/element.js";

const told = await (await fetch("/openapi.json")).json();
const main = document.querySelector("#paths");
main.append(make("p", {}, told.info.description));
for (const [path, methods] of Object.entries(told.paths)) {
  for (const [method, about] of Object.entries(methods)) main.append(section(path, method, about));
}

function section(path, method, about) {
  const rows = rowsOf(about.requestBody?.content["application/json"].schema ?? {}, "");
  const table = rows.length ? make("table", {}, make("tbody", {}, ...rows)) : null;
  const text = (about.description ?? "").split("\n\n")[0];
  return make("section", { class: "path" }, make("h3", {}, `${method.toUpperCase()} ${path}`), make("p", {}, text), table);
}

// The fields of an object, and below each those of what it holds.
function rowsOf(schema, before) {
  return Object.entries(schema.properties ?? {}).flatMap(([name, one]) => [
    row(before + name, one, (schema.required ?? []).includes(name)),
    ...held(one).flatMap((inner) => rowsOf(inner, `${before}${name}.`)),
  ]);
}

// The objects that a field may be, or be a list of.
function held(one) {
  if (one.$ref) return [told.components.schemas[nameOf(one)]];
  return [...(one.anyOf ?? []), ...(one.items ? [one.items] : [])].flatMap(held);
}

function nameOf(one) {
  return one.$ref?.split("/").pop();
}

function row(name, one, required) {
  const value = one.default === undefined || one.default === null ? "" : `${JSON.stringify(one.default)}`;
  const kind = kindOf(one) + (required ? ", needed" : value ? `, ${value} unless told` : "");
  return make("tr", {}, make("td", {}, name), make("td", {}, kind));
}

function kindOf(one) {
  if (one.anyOf) return one.anyOf.map(kindOf).filter((kind) => kind !== "null").join(" or ");
  if (one.enum) return one.enum.join(" or ");
  if (one.type === "array") return `list of ${kindOf(one.items ?? {})}`;
  const range = [one.minimum ?? one.exclusiveMinimum, one.maximum ?? one.exclusiveMaximum];
  const bounds = range.every((end) => end === undefined) ? "" : ` ${range[0] ?? ""} to ${range[1] ?? ""}`;
  return (one.type ?? nameOf(one) ?? "anything") + bounds;
}
