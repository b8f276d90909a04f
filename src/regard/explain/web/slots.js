// A colour for each run that stays its own, whatever other runs are shown beside it.

import { lookOf } from "./curves.js";

const COUNT = 24; // looks that can be told apart

/** Looks by name: each takes the one that its name leads to, or the next that is free. */
export class Slots {
  constructor() {
    this.taken = new Map();
  }

  of(name) {
    if (!this.taken.has(name)) {
      const used = new Set(this.taken.values());
      let slot = hashOf(name) % 8;
      for (let tries = 0; used.has(slot) && tries < COUNT; tries += 1) slot = (slot + 1) % COUNT;
      this.taken.set(name, slot);
    }
    return lookOf(this.taken.get(name));
  }
}

// FNV-1a, of 32 bits (Fowler, Noll and Vo 1991).
function hashOf(text) {
  let found = 2166136261;
  for (const letter of text) found = Math.imul(found ^ letter.codePointAt(0), 16777619) >>> 0;
  return found;
}
