/** The request target as text: what it is a path of, whichever form it came in (RFC 9112 section 3.2). */

/** The path of a request target in origin-form or absolute-form, without its query; `*` stays `*`. */
export function pathOf(target: string): string {
  const origin = originForm(target);
  const end = origin.search(/[?#]/);
  return end === -1 ? origin : origin.slice(0, end);
}

/** The query of a request target with its question mark, or `''`. */
export function searchOf(target: string): string {
  const start = target.indexOf('?');
  if (start === -1) return '';
  const fragment = target.indexOf('#');
  if (fragment === -1) return target.slice(start);
  return fragment < start ? '' : target.slice(start, fragment);
}

/**
 * The target without the scheme and authority that a client may send in front of it. Node's own parser of URLs, which
 * `ctx.path` calls for such a target, throws for an authority like `[`.
 */
export function originForm(target: string): string {
  const authority = target.startsWith('/') ? null : /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i.exec(target);
  if (authority === null) return target;
  const rest = target.slice(authority[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
