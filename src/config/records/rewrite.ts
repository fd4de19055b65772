/** What a Mapping does with the path: `rewrite` and `regex_rewrite` for its service, redirects for the client. */
import type { Fault } from '../errors.ts';
import { isHostAndPort, parseServiceReference } from '../fields/addresses.ts';
import { field, mapOf, text } from '../fields/field.ts';
import { prefixFault, rewriteFault, withoutTrailingSlash } from '../fields/paths.ts';
import { patternFault, substitutionFault } from '../fields/pattern.ts';
import { quote } from '../quote.ts';
import { hostFault } from './match.ts';

/** RE2's syntax on the whole path; `\1` in the substitution is the first group. */
export interface RegexRewrite {
  readonly pattern: string;
  readonly substitution: string;
}

/** The answer is a redirect: no auth service is asked, and no service is called. */
export interface Redirect {
  /** Host and port of the `Location`, after `https://` where the record says so; undefined: the request's own. */
  readonly host: string | undefined;
  /** `path`: the whole path; `prefix`: in place of the mapping's prefix; `regex`: as a rewrite; undefined: the path stays. */
  readonly path:
    | { readonly kind: 'path' | 'prefix'; readonly value: string }
    | ({ readonly kind: 'regex' } & RegexRewrite)
    | undefined;
  readonly status: RedirectStatus;
}

export const redirectStatuses = [301, 302, 303, 307, 308] as const;
type RedirectStatus = (typeof redirectStatuses)[number];

export const path = text(prefixFault);
export const prefix = path.transform(withoutTrailingSlash);
export const rewrittenPrefix = text(rewriteFault).transform(withoutTrailingSlash);
/** A `host_rewrite` to the host of the address that is called. */
export const serviceHost = '{service}';
export const hostRewrite = text((given) =>
  given === serviceHost || isHostAndPort(given) ? undefined : hostFault(given),
);

const regexRewriteFields = {
  pattern: field({ name: 'pattern', schema: text(patternFault), type: 'regex', docs: '', example: '^/v1/' }),
  substitution: field({
    name: 'substitution',
    schema: text(substitutionTextFault),
    type: 'text',
    docs: '',
    example: '/v2/',
  }),
};

export const regexRewrite = mapOf(regexRewriteFields, [
  {
    at: 'substitution',
    reads: ['pattern'],
    faultOf: ({ pattern = '', substitution = '' }) => substitutionFault(substitution, pattern),
  },
]);

/** Only the path is rewritten, and its groups match parts of a plain path: this checks the text around them. */
function substitutionTextFault(substitution: string): Fault | undefined {
  if (/^[\x21-\x22\x24-\x3e\x40-\x7e]*$/.test(substitution)) return undefined;
  return {
    message: `${quote(substitution)} holds a query, a fragment or what no path can hold`,
    remedy: 'Only the path is rewritten: percent-encode "?" and "#", or leave them out.',
  };
}

/** The fields of a record that `redirectOf` combines. */
export interface RedirectFields {
  /** Names the host of a `host_redirect`. */
  readonly service: string;
  readonly hostRedirect: boolean;
  readonly pathRedirect: string | undefined;
  readonly prefixRedirect: string | undefined;
  readonly regexRedirect: RegexRewrite | undefined;
  readonly redirectResponseCode: RedirectStatus | undefined;
}

/** Undefined where the service is called. */
export function redirectOf(fields: RedirectFields): Redirect | undefined {
  const target = redirectPathOf(fields);
  if (!fields.hostRedirect && target === undefined) return undefined;
  const host = fields.hostRedirect ? authorityOf(fields.service) : undefined;
  return { host, path: target, status: fields.redirectResponseCode ?? 301 };
}

function redirectPathOf(fields: RedirectFields): Redirect['path'] {
  const { pathRedirect, prefixRedirect, regexRedirect } = fields;
  if (pathRedirect !== undefined) return { kind: 'path', value: pathRedirect };
  if (prefixRedirect !== undefined) return { kind: 'prefix', value: prefixRedirect };
  return regexRedirect && { kind: 'regex', ...regexRedirect };
}

function authorityOf(service: string): string | undefined {
  const reference = parseServiceReference(service);
  if (reference === undefined) return undefined;
  const { scheme, host, port } = reference;
  // With http the client's scheme stays: no client is led from https to http.
  return `${scheme === 'https' ? 'https://' : ''}${host}${port === undefined ? '' : `:${port}`}`;
}
