/** Texts that others wrote, without the credentials that may stand in them. */

/** Whether what a header, a parameter or an entry of that name holds is for nobody else to read. */
export type NamesSecret = (name: string) => boolean;

/**
 * Takes user and password out of URLs, percent-encoded ones as well: `postgres://…@host`. A password that should have been
 * encoded may hold anything, and of a text that was cut the end may be one, so that rather too much is taken than too little.
 */
export function concealText(text: string): string {
  return mayHoldUserinfo(text) ? text.replace(userinfo, '$1$2…@') : text;
}

/** Most texts do not hold how a match of `userinfo` ends, and of 10,000 routes there are many to look through. */
function mayHoldUserinfo(text: string): boolean {
  return text.includes('@') || text.includes('%40') || text.endsWith('…');
}

const [slash, colon, at] = ['(?:\\/|%2f)', '(?::|%3a)', '(?:@|%40)'];
const start = `(${colon}${slash}|${slash}{2})(${slash}?)`;
const named = `(?:(?!${slash}|${colon}|${at})\\S)*${colon}\\S*`;
const nameless = `(?:(?!${slash}|${at})\\S)*`;
const userinfo = new RegExp(`${start}(?:${named}|${nameless})(?:${at}|…$)`, 'gi');

/**
 * The message of a configuration error, which begins with the field: where that names a secret, what it quotes is the
 * value. User and password go from all that it quotes, with a scheme or without. `the key "x" with the value "y"` is how
 * limits that stand twice are told.
 */
export function concealMessage(message: string, namesSecret: NamesSecret): string {
  const [field = ''] = message.split(' ', 1);
  const known = namesSecret(field.replace(openField, '')) ? message.replace(/["`].*["`]/s, '"…"') : message;
  const clean = concealText(known).replace(/(["`])[^\s"`/@]+:[^\s"`/@]+@/g, '$1…@');
  return clean.replace(/(the key "([^"]*)" with the value )".*"/g, (whole, before: string, key: string) =>
    isSecretKey(key, namesSecret) ? `${before}"…"` : whole,
  );
}

/** Fields of records whose own names speak of auth, and say nothing of what is in them. */
const openField = /^(?:auth_service|allowed_authorization_headers|add_auth_headers)\b\.?/;

/** Of a limit's descriptor. Envoy's `generic_key` is a key to nothing: its value is a word of the configuration. */
export function isSecretKey(key: string, namesSecret: NamesSecret): boolean {
  return key !== 'generic_key' && namesSecret(key);
}
