/** Texts with URLs, with the credentials in them concealed. */

/**
 * Removes user and password from URLs, percent-encoded ones too: `postgres://…@host`. An unencoded password may contain
 * any character, and a truncated text may end within one, so this removes rather too much than too little.
 */
export function conceal(text: string): string {
  return mayHoldUserinfo(text) ? text.replace(userinfo, '$1$2…@') : text;
}

/** A cheap test first: most texts cannot match `userinfo`. */
function mayHoldUserinfo(text: string): boolean {
  return text.includes('@') || text.includes('%40') || text.endsWith('…');
}

const [slash, colon, at] = ['(?:\\/|%2f)', '(?::|%3a)', '(?:@|%40)'];
const start = `(${colon}${slash}|${slash}{2})(${slash}?)`;
const named = `(?:(?!${slash}|${colon}|${at})\\S)*${colon}\\S*`;
const nameless = `(?:(?!${slash}|${at})\\S)*`;
const userinfo = new RegExp(`${start}(?:${named}|${nameless})(?:${at}|…$)`, 'gi');
