/** Texts of the configuration as messages quote them: never with what may be a secret. */

const lengthMax = 120;

/** In quotation marks, on one line, and cut when it is long. */
export function quote(text: string): string {
  const shown = withoutSecrets(text);
  return JSON.stringify(shown.length > lengthMax ? `${shown.slice(0, lengthMax)}…` : shown);
}

/**
 * Leaves out all before an `@` that may follow the user and the password of a URL, and all after a `?` that may begin
 * its query; percent-encoded as well, and however odd the text is. It removes rather too much than too little.
 */
export function withoutSecrets(text: string): string {
  return withoutQuery(withoutUserinfo(text));
}

export function mayHoldSecret(text: string): boolean {
  return withoutSecrets(text) !== text;
}

function withoutUserinfo(text: string): string {
  const last = [...text.matchAll(at)].pop();
  const before = text.slice(0, last?.index ?? 0);
  if (!urlStart.test(before)) return text;
  // Either the password has a question mark in it, or the query has an `@`.
  const after = questionMark.test(before) ? '' : text.slice(last?.index);
  return `${scheme.exec(before)?.[0] ?? ''}…${after}`;
}

/** A question mark is also a quantifier of regular expressions: alone, without a URL or an argument, it stays. */
function withoutQuery(text: string): string {
  const mark = questionMark.exec(text);
  if (mark === null) return text;
  const before = text.slice(0, mark.index);
  const isQuery = slashes.test(before) || before.includes('…') || equals.test(text.slice(mark.index));
  return isQuery ? `${before}${mark[0]}…` : text;
}

const scheme = /^[a-z][\w+.-]{0,15}:\/\//i;
const at = /@|%(?:25)*40/gi;
const slashes = /(?:\/|%(?:25)*2f){2}/i;
/** RFC 3986 section 3.2: credentials follow two slashes; without a scheme, a password follows a colon. */
const urlStart = /:|%(?:25)*3a|(?:\/|%(?:25)*2f){2}/i;
const questionMark = /\?|%(?:25)*3f/i;
const equals = /=|%(?:25)*3d/i;
