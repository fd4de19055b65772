/** Mappings that change what the service sees of a path, or send the client elsewhere. */
import * as z from 'zod';
import { isHostAndPort } from './addresses.ts';
import { complain, type Fault, strict, text } from './fields.ts';
import { hostFault } from './host-match.ts';
import type { Redirect, RegexRewrite } from './mapping-parts.ts';
import { prefixFault, rewriteFault, withoutTrailingSlash } from './paths.ts';
import { patternFault, substitutionFault } from './pattern.ts';
import { parseServiceReference } from './references.ts';

const regexRewrite = strict({ pattern: text(patternFault), substitution: text(substitutionTextFault) }).check(
  (payload) => {
    const { pattern, substitution } = payload.value;
    complain(payload, ['substitution'], substitutionFault(substitution, pattern));
  },
);

const statuses = [301, 302, 303, 307, 308] as const;

export const targetFields = {
  rewrite: text(rewriteFault).transform(withoutTrailingSlash).optional(),
  regex_rewrite: regexRewrite.optional(),
  host_rewrite: text(authorityFault).optional(),
  host_redirect: z.boolean().default(false),
  path_redirect: text(prefixFault).optional(),
  prefix_redirect: text(prefixFault).transform(withoutTrailingSlash).optional(),
  regex_redirect: regexRewrite.optional(),
  redirect_response_code: z.literal(statuses).optional(),
} as const;

type TargetFields = z.infer<z.ZodObject<typeof targetFields>>;

/** Undefined where the service is called. `service` names the host of a `host_redirect`. */
export function redirectOf(fields: TargetFields, service: string): Redirect | undefined {
  const path = redirectPathOf(fields);
  if (!fields.host_redirect && path === undefined) return undefined;
  const host = fields.host_redirect ? authorityOf(service) : undefined;
  return { host, path, status: fields.redirect_response_code ?? 301 };
}

function redirectPathOf(fields: TargetFields): Redirect['path'] {
  const { path_redirect: path, prefix_redirect: prefix, regex_redirect: regex } = fields;
  if (path !== undefined) return { kind: 'path', value: path };
  if (prefix !== undefined) return { kind: 'prefix', value: prefix };
  return regex && { kind: 'regex', ...(regex satisfies RegexRewrite) };
}

function authorityOf(service: string): string | undefined {
  const reference = parseServiceReference(service);
  return reference && `${reference.host}${reference.port === undefined ? '' : `:${reference.port}`}`;
}

function authorityFault(authority: string): Fault | undefined {
  return isHostAndPort(authority) ? undefined : hostFault(authority);
}

/** What stands outside of the groups; they hold parts of a path that was plain already. */
function substitutionTextFault(substitution: string): Fault | undefined {
  if (/^[\x21-\x22\x24-\x3e\x40-\x7e]*$/.test(substitution)) return undefined;
  return {
    message: `${JSON.stringify(substitution)} holds a query, a fragment or what no path can hold`,
    remedy: 'Only the path is rewritten: percent-encode "?" and "#", or leave them out.',
  };
}
