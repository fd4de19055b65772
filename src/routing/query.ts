/** Query parameters as rules compare them. */

export interface Query {
  /** The first value of the name; undefined when it is not there. */
  readonly first: (name: string) => string | undefined;
}

/**
 * Read as a form, like most services do (WHATWG URL, application/x-www-form-urlencoded): `+` is a space, names and
 * values are percent-decoded as UTF-8, so that `?%61dmin=1` cannot slip past a rule for `admin`. Read when first asked,
 * and only `names` are kept: what a client sends beside them takes no memory.
 */
export function createQuery(search: string, names: ReadonlySet<string>): Query {
  let values: ReadonlyMap<string, string> | undefined;
  return {
    first(name) {
      values ??= firstValues(search, names);
      return values.get(name);
    },
  };
}

function firstValues(search: string, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  let start = 1;
  while (start < search.length && values.size < names.size) {
    const ampersand = search.indexOf('&', start);
    const end = ampersand === -1 ? search.length : ampersand;
    const pair = search.slice(start, end);
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    if (names.has(name) && !values.has(name)) values.set(name, equals === -1 ? '' : decode(pair.slice(equals + 1)));
    start = end + 1;
  }
  return values;
}

/**
 * A broken escape stays as it stands, and what is not UTF-8 becomes U+FFFD. `decodeURIComponent` throws for both, which
 * makes 16 KiB of such escapes cost a tenth of a second; so does URLSearchParams, which calls it. Node gives bytes that
 * were not escaped as Latin-1.
 */
function decode(text: string): string {
  const bytes = /[%+]/.test(text) ? text.replaceAll('+', ' ').replace(/%([\da-f]{2})/gi, decodeByte) : text;
  return /[\u0080-\uffff]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes;
}

function decodeByte(_: string, digits: string): string {
  return String.fromCharCode(Number.parseInt(digits, 16));
}
