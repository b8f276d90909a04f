// Pictures that came in the data of a page: decoded by the browser, fetched from nowhere.

import { decoded } from "./matrix.js";

/** A PNG in base64 as a canvas; what it shows is not tainted by anything from elsewhere. */
export async function canvasOf(text) {
  const file = new Blob([decoded(text)], { type: "image/png" });
  const image = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d", { willReadFrequently: true }).drawImage(image, 0, 0);
  image.close();
  return canvas;
}
