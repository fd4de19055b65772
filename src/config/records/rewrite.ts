/** Path rewrites of a Mapping for its service (`rewrite`, `regex_rewrite`), and redirects for the client. */
import type { Fault } from '../errors.ts';
import { isHostAndPort, parseServiceReference } from '../fields/addresses.ts';
import { field, mapOf, text } from '../fields/field.ts';
import { optionalPathSchema, pathSchema, prefixFault, rewriteFault, withoutTrailingSlash } from '../fields/paths.ts';
import { patternFault, substitutionFault } from '../fields/pattern.ts';
import { quote } from '../quote.ts';
import { hostFault } from './match.ts';

/** Replaces matches of an RE2 pattern in the path. `\1` in the substitution is the first group. */
export interface RegexRewrite {
  readonly pattern: string;
  readonly substitution: string;
}

/** Responds with a redirect, without calling the auth service or the service. */
export interface Redirect {
  /** Undefined to keep the scheme of the request. */
  readonly scheme: 'http' | 'https' | undefined;
  /** An IPv6 address has brackets. Undefined to keep the host of the request. */
  readonly host: string | undefined;
  /** Undefined to keep the port of the request, or for the default port if there is a scheme or a host. */
  readonly port: number | undefined;
  /** Replaces the whole path, the mapping's prefix, or matches of a pattern. Undefined to keep the path. */
  readonly path:
    | { readonly kind: 'path' | 'prefix'; readonly value: string }
    | ({ readonly kind: 'regex' } & RegexRewrite)
    | undefined;
  readonly status: RedirectStatus;
}

export const redirectStatuses = [301, 302, 303, 307, 308] as const;
type RedirectStatus = (typeof redirectStatuses)[number];

export const path = text(prefixFault, pathSchema);
export const prefix = path.transform(withoutTrailingSlash);
export const rewrittenPrefix = text(rewriteFault, optionalPathSchema).transform(withoutTrailingSlash);
/** The `host_rewrite` that stands for the host of the called address. */
export const serviceHost = '{service}';
export const hostRewrite = text((given) =>
  given === serviceHost || isHostAndPort(given) ? undefined : hostFault(given),
);

const substitutionForm = /^[\x21-\x22\x24-\x3e\x40-\x7e]*$/;

const regexRewriteFields = {
  pattern: field({ schema: text(patternFault) }),
  substitution: field({ schema: text(substitutionTextFault, { pattern: substitutionForm.source }) }),
};

export const regexRewrite = mapOf(regexRewriteFields, [
  {
    at: 'substitution',
    reads: ['pattern'],
    faultOf: ({ pattern = '', substitution = '' }) => substitutionFault(substitution, pattern),
  },
]);

/** Checks the text around the groups of a substitution. The groups themselves match parts of a valid path. */
function substitutionTextFault(substitution: string): Fault | undefined {
  if (substitutionForm.test(substitution)) return undefined;
  return {
    message: `${quote(substitution)} contains a query, a fragment or characters that are not allowed in a path`,
    remedy: 'Only the path is rewritten: percent-encode "?" and "#", or leave them out.',
  };
}

/** The fields of a record from which `redirectOf` builds the redirect. */
export interface RedirectFields {
  /** The target host of a `host_redirect`. */
  readonly service: string;
  readonly hostRedirect: boolean;
  readonly pathRedirect: string | undefined;
  readonly prefixRedirect: string | undefined;
  readonly regexRedirect: RegexRewrite | undefined;
  readonly redirectResponseCode: RedirectStatus | undefined;
}

/** Returns undefined for a mapping that calls its service. */
export function redirectOf(fields: RedirectFields): Redirect | undefined {
  const target = redirectPathOf(fields);
  if (!fields.hostRedirect && target === undefined) return undefined;
  const reference = fields.hostRedirect ? parseServiceReference(fields.service) : undefined;
  const { scheme, host, port } = reference ?? {};
  return {
    // Other schemes keep the client's own, so that no client is redirected from https to http.
    scheme: scheme === 'https' ? scheme : undefined,
    host,
    port,
    path: target,
    status: fields.redirectResponseCode ?? 301,
  };
}

function redirectPathOf(fields: RedirectFields): Redirect['path'] {
  const { pathRedirect, prefixRedirect, regexRedirect } = fields;
  if (pathRedirect !== undefined) return { kind: 'path', value: pathRedirect };
  if (prefixRedirect !== undefined) return { kind: 'prefix', value: prefixRedirect };
  return regexRedirect && { kind: 'regex', ...regexRedirect };
}

/** Returns `https://new.example:8443`, without what stays as it is in the request. Undefined if all of it stays. */
export function formatRedirectHost({ scheme, host, port }: Redirect): string | undefined {
  if (scheme === undefined && host === undefined && port === undefined) return undefined;
  const authority = `${host ?? '<same host>'}${port === undefined ? '' : `:${port}`}`;
  return scheme === undefined ? authority : `${scheme}://${authority}`;
}
