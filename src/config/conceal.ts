/** Which names hold secrets, and texts with the credentials in them concealed. */

/** Whether the value of a header, a parameter or a descriptor entry with this name is a secret. */
export function namesSecret(name: string): boolean {
  return secret.test(name);
}

const secret =
  /authorization|cookie|token|secret|passw|credential|signature|session|(?:^|[-_])(?:api[-_]?key|auth|key|jwt|pass|pwd)(?:[-_]|$)/i;

/** The same for the key of a limit's descriptor. The value of Envoy's `generic_key` is a word of the configuration. */
export function isSecretKey(key: string): boolean {
  return key !== 'generic_key' && namesSecret(key);
}

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

/**
 * The message of a configuration error with its secrets concealed. It begins with the field's name: when that names a
 * secret, the quoted text is its value. Also conceals `user:password@` in quotes, with or without a scheme, and the value
 * in `the key "x" with the value "y"`, which is how repeated limits are reported.
 */
export function concealMessage(message: string): string {
  const [field = ''] = message.split(' ', 1);
  const known = namesSecret(field.replace(openField, '')) ? message.replace(/["`].*["`]/s, '"…"') : message;
  const clean = conceal(known).replace(/(["`])[^\s"`/@]+:[^\s"`/@]+@/g, '$1…@');
  return clean.replace(/(the key "([^"]*)" with the value )".*"/g, (whole, before: string, key: string) =>
    isSecretKey(key) ? `${before}"…"` : whole,
  );
}

/** Fields of records whose names mention auth and whose values are no secrets. */
const openField = /^(?:auth_service|allowed_authorization_headers|add_auth_headers)\b\.?/;
