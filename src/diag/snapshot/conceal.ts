/** Conceals the credentials of URLs in texts. */

/**
 * Replaces user and password in URLs, including percent-encoded URLs: `postgres://…@host`. An unencoded password may
 * contain any character, and a truncated text may end within a password, so it is better to remove too much.
 */
export function conceal(text: string): string {
  return mayContainUserinfo(text) ? text.replace(userinfo, '$1$2…@') : text;
}

/** A cheap test that avoids the regular expression for most texts. */
function mayContainUserinfo(text: string): boolean {
  return text.includes('@') || text.includes('%40') || text.endsWith('…');
}

const [slash, colon, at] = ['(?:\\/|%2f)', '(?::|%3a)', '(?:@|%40)'];
const start = `(${colon}${slash}|${slash}{2})(${slash}?)`;
const userAndPassword = `(?:(?!${slash}|${colon}|${at})\\S)*${colon}\\S*`;
const userOnly = `(?:(?!${slash}|${at})\\S)*`;
const userinfo = new RegExp(`${start}(?:${userAndPassword}|${userOnly})(?:${at}|…$)`, 'gi');
