/** A path that was put together from pieces of another: it must mean one thing only, as that of the request did. */

/**
 * The path with exactly one slash in front, or undefined when a service could read it in another way: it holds a dot
 * segment or a backslash, under any number of encodings, an incomplete percent-encoding, or what ends a path.
 */
export function plainPath(path: string): string | undefined {
  const rooted = `/${path.replace(/^\/+/, '')}`;
  if (/%(?![\da-f]{2})|[?#\s\x7f]|[^!-\uffff]/i.test(rooted)) return undefined;
  return isPlain(rooted) ? rooted : undefined;
}

/** Deeper than anybody needs; the bound keeps the reading of `%25252525…` linear. */
const encodingsMax = 4;

/** Every hop on the way may decode once more, so the dots of `%252e%252e` are dots too. */
function isPlain(path: string): boolean {
  let seen = path;
  for (let encodings = 0; encodings <= encodingsMax; encodings += 1) {
    if (/[\\\0\r\n]|\/\.{1,2}(?:[/;?#]|$)/.test(seen)) return false;
    const decoded = seen.replace(/%[\da-f]{2}/gi, decodeByte);
    if (decoded === seen) return true;
    seen = decoded;
  }
  return false;
}

function decodeByte(encoded: string): string {
  return String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
}
