// Shades and colours that people who see colours differently can tell apart.
//
// A ramp is written as stops in OKLCH (lightness, chroma, hue), evenly spaced in lightness, so that equal steps of a
// weight look equal. On a dark page more is brighter.

const RAMPS = {
  light: [[0.985, 0.006, 100], [0.81, 0.085, 172], [0.635, 0.115, 222], [0.46, 0.13, 256], [0.285, 0.105, 280]],
  dark: [[0.235, 0.018, 265], [0.4, 0.085, 265], [0.565, 0.115, 235], [0.73, 0.115, 190], [0.9, 0.115, 108]],
};
// Below zero orange, above zero blue, as bars are.
const DIVERGING = {
  light: [[0.4, 0.11, 45], [0.69, 0.13, 60], [0.98, 0, 0], [0.69, 0.11, 245], [0.4, 0.14, 258]],
  dark: [[0.86, 0.12, 75], [0.55, 0.11, 52], [0.24, 0, 0], [0.55, 0.1, 248], [0.86, 0.09, 230]],
};
/** Of Okabe and Ito. */
export const SERIES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a", "#b8a800"];

/** The masked shade; weights have 1 to 255. */
export const MASKED = 0;

/** A table from shades to colours: `packed` for pixels, `css` for everything else. */
export function rampOf(diverging, dark) {
  const stops = (diverging ? DIVERGING : RAMPS)[dark ? "dark" : "light"].map(asLab);
  const packed = new Uint32Array(256);
  const colours = [[0, 0, 0]];
  for (let shade = 1; shade < 256; shade += 1) {
    const colour = asRgb(between(stops, (shade - 1) / 254));
    colours.push(colour);
    packed[shade] = (255 << 24) | (colour[2] << 16) | (colour[1] << 8) | colour[0];
  }
  return { packed, colours, css: (shade) => `rgb(${colours[shade].join(" ")})` };
}

/** Black or white, whichever is read better on a colour. */
export function inkOn([red, green, blue]) {
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? "#11151a" : "#ffffff";
}

/** Whether an element stands on a dark page: told from the colour of its text. */
export function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g).map(Number);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140;
}

// Held weakly, so that an element that was drawn again is let go.
const acts = new WeakMap();
let watched = [];
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const one of watched) acts.get(one.deref())?.();
});

/** Calls `act` when the reader's system turns dark or light, for as long as there is the element. */
export function whenTurned(element, act) {
  acts.set(element, act);
  watched = [...watched.filter((one) => one.deref()), new WeakRef(element)];
}

function asLab([lightness, chroma, hue]) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

function between(stops, share) {
  const place = share * (stops.length - 1);
  const first = Math.min(stops.length - 2, Math.floor(place));
  return stops[first].map((value, part) => value + (stops[first + 1][part] - value) * (place - first));
}

// The numbers are those of Björn Ottosson's OKLab (2020) and of the sRGB curve.
function asRgb([lightness, a, b]) {
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const brief = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * brief,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * brief,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * brief,
  ];
  return linear.map((value) => {
    const held = Math.min(1, Math.max(0, value));
    return Math.round(255 * (held <= 0.0031308 ? 12.92 * held : 1.055 * held ** (1 / 2.4) - 0.055));
  });
}
