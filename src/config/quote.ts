/** Quotes text from the configuration for messages, without anything that may be a secret. */
import { quoteShort } from '#foundation';

/** Returns the text as a JSON string on one line, without secrets, and truncated if it is long. */
export function quote(text: string): string {
  return quoteShort(withoutSecrets(text), { charactersMax: 120 });
}

/**
 * Removes everything before an `@` that may end a URL's credentials, and everything after a `?` that may start its
 * query, percent-encoded or not, whatever the rest of the text is. It errs on the side of removing too much. Also
 * removes a PEM block, which may be a private key.
 */
export function withoutSecrets(text: string): string {
  const [beforeKey = '', ...more] = text.split('-----BEGIN ');
  return more.length > 0 ? `${withoutSecrets(beforeKey)}…` : withoutQuery(withoutUserinfo(text));
}

export function mayHoldSecret(text: string): boolean {
  return withoutSecrets(text) !== text;
}

function withoutUserinfo(text: string): string {
  const last = [...text.matchAll(at)].pop();
  const before = text.slice(0, last?.index ?? 0);
  if (!urlStart.test(before)) return text;
  // With a `?` before the last `@`, either the password contains a question mark or the query contains an `@`.
  const after = questionMark.test(before) ? '' : text.slice(last?.index);
  return `${scheme.exec(before)?.[0] ?? ''}…${after}`;
}

/**
 * Keeps a question mark that belongs to no URL and precedes no `=`, because it may be a quantifier in a regular
 * expression.
 */
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
/**
 * Credentials follow two slashes (RFC 3986 section 3.2) or, in text without a scheme, contain a colon before the
 * password.
 */
const urlStart = /:|%(?:25)*3a|(?:\/|%(?:25)*2f){2}/i;
const questionMark = /\?|%(?:25)*3f/i;
const equals = /=|%(?:25)*3d/i;
