// Questions to the server of the page.

/**
 * What the server answered; an error says why there is no answer.
 * isGone: the server does not run any more. most, fits: of a text that is too long, the tokens that the view takes and
 * how many characters from the first on these are. isTooMuch: it is too long for anybody to have counted.
 */
export async function ask(path, body = undefined, signal = undefined) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const given = { method: body === undefined ? "GET" : "POST", headers, signal, body: JSON.stringify(body) };
  let answer;
  let told;
  try {
    answer = await fetch(path, given);
    told = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const message = "The server does not answer. Start regard lab again, then try once more.";
    throw Object.assign(new Error(message), { isGone: true });
  }
  if (!answer.ok) {
    const { error = `the server answered ${answer.status}`, most, fits } = told;
    throw Object.assign(new Error(error), { most, fits, isTooMuch: answer.status === 413 });
  }
  return told;
}
