/** What a Mapping that redirects may not say: nobody is asked who the client is, and no service is called. */
import type { Fault } from './fields.ts';
import type { MappingFields } from './mapping.ts';
import type { MappingRule } from './mapping-rules.ts';

const pathFields = ['path_redirect', 'prefix_redirect', 'regex_redirect'] as const;

/** Only for a service that is called. */
export const callFields = [
  'rewrite',
  'regex_rewrite',
  'host_rewrite',
  'weight',
  'shadow',
  'timeout_ms',
  'connect_timeout_ms',
  'idle_timeout_ms',
  'retry_policy',
  'circuit_breakers',
  'health_checks',
  'outlier_detection',
  'load_balancer',
  'add_request_headers',
  'remove_request_headers',
  'allow_upgrade',
  'labels',
  'bypass_auth',
  'auth_service',
] as const satisfies readonly (keyof MappingFields)[];

const redirectFields = ['host_redirect', ...pathFields] as const;

/** Empty for most mappings, which redirect nobody. */
export function redirectRulesOf(fields: MappingFields): readonly MappingRule[] {
  return fields.redirect_response_code === undefined && redirectOf(fields) === undefined ? [] : rules;
}

const rules: readonly MappingRule[] = [
  ...pathFields.slice(1).map(
    (field, index): MappingRule => ({
      at: field,
      reads: pathFields,
      faultOf(fields) {
        const other = pathFields.slice(0, index + 1).find((earlier) => fields[earlier] !== undefined);
        return fields[field] === undefined || other === undefined
          ? undefined
          : { message: `stands beside ${other}`, remedy: 'Keep one of the two: a redirect leads to one path.' };
      },
    }),
  ),
  {
    at: 'prefix_redirect',
    reads: ['prefix_regex'],
    faultOf: ({ prefix_redirect: redirect, prefix_regex: isRegex }) =>
      isRegex && redirect !== undefined
        ? { message: 'stands beside prefix_regex', remedy: 'Set regex_redirect: a regex has no prefix.' }
        : undefined,
  },
  {
    at: 'redirect_response_code',
    reads: redirectFields,
    faultOf: (fields) =>
      fields.redirect_response_code !== undefined && redirectOf(fields) === undefined
        ? { message: 'says nothing without a redirect', remedy: 'Set host_redirect or path_redirect, or remove it.' }
        : undefined,
  },
  ...callFields.map((field): MappingRule => ({ at: field, reads: redirectFields, faultOf: callFault(field) })),
];

function callFault(field: (typeof callFields)[number]): (fields: MappingFields) => Fault | undefined {
  return (fields) => {
    const given = fields[field] !== undefined && fields[field] !== false;
    const redirect = given ? redirectOf(fields) : undefined;
    if (redirect === undefined) return undefined;
    const message = `is for a service that is called, and ${redirect} sends the client elsewhere`;
    return { message, remedy: `Remove ${field}, or ${redirect}.` };
  };
}

/** The field that makes the mapping a redirect. */
function redirectOf(fields: MappingFields): string | undefined {
  return redirectFields.find((field) => fields[field] !== undefined && fields[field] !== false);
}
