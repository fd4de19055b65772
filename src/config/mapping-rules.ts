/** What the fields of one Mapping may not say together, and what one of them means by another. */
import type * as z from 'zod';
import { complain, type Fault } from './fields.ts';
import { hostFault } from './host-match.ts';
import type { MappingFields } from './mapping.ts';
import { methodFault } from './methods.ts';
import { prefixFault } from './paths.ts';
import { patternFault } from './pattern.ts';
import { redirectRulesOf } from './redirect-rules.ts';

type Field = keyof MappingFields;

export interface MappingRule {
  /** The field that is told of. */
  readonly at: Field;
  /** Others that are read: the rule is left out where one of them is wrong by itself. */
  readonly reads: readonly Field[];
  readonly faultOf: (fields: MappingFields) => Fault | undefined;
}

/** Every rule that can be judged, however many other fields are wrong. */
export function checkMapping(fields: MappingFields, { value, issues }: z.core.$RefinementCtx<MappingFields>): void {
  const wrong = new Set(issues.map(({ path }) => path?.[0]));
  for (const { at, reads, faultOf } of [...rules, ...redirectRulesOf(fields)]) {
    if (wrong.size > 0 && [at, ...reads].some((field) => wrong.has(field))) continue;
    complain({ value, issues }, [at], faultOf(fields));
  }
}

/** Whether fields that are right by themselves are so beside each other. */
export function areConsistent(fields: MappingFields): boolean {
  const isKept = ({ faultOf }: MappingRule) => faultOf(fields) === undefined;
  return rules.every(isKept) && redirectRulesOf(fields).every(isKept);
}

const rules: readonly MappingRule[] = [
  {
    at: 'prefix',
    reads: ['prefix_regex'],
    faultOf: ({ prefix, prefix_regex: isRegex }) => (isRegex ? patternFault(prefix) : prefixFault(prefix)),
  },
  {
    at: 'prefix_exact',
    reads: ['prefix', 'prefix_regex'],
    faultOf({ prefix, prefix_exact: isExact, prefix_regex: isRegex }) {
      if (isExact && isRegex)
        return beside('prefix_regex', 'Keep one of the two: a regex is of the whole path anyway.');
      return isExact && prefix.length > 1 && prefix.endsWith('/')
        ? { message: 'is of a path without a slash at the end', remedy: `Write prefix: ${prefix.slice(0, -1)}` }
        : undefined;
    },
  },
  {
    at: 'case_sensitive',
    reads: ['prefix_regex'],
    faultOf: ({ case_sensitive: isSensitive, prefix_regex: isRegex }) =>
      isRegex && !isSensitive ? beside('prefix_regex', 'Put (?i) at the start of the regex.') : undefined,
  },
  {
    at: 'host',
    reads: ['host_regex', 'hostname'],
    faultOf({ host, host_regex: isRegex, hostname }) {
      if (host === undefined) return undefined;
      if (hostname !== undefined) return beside('hostname', 'Keep one of the two.');
      return isRegex ? patternFault(host) : hostFault(host);
    },
  },
  {
    at: 'host_regex',
    reads: ['host'],
    faultOf: ({ host, host_regex: isRegex }) => (isRegex && host === undefined ? without('host') : undefined),
  },
  {
    at: 'method',
    reads: ['method_regex'],
    faultOf({ method, method_regex: isRegex }) {
      if (method === undefined) return undefined;
      return isRegex ? patternFault(method) : methodFault(method);
    },
  },
  {
    at: 'method_regex',
    reads: ['method'],
    faultOf: ({ method, method_regex: isRegex }) => (isRegex && method === undefined ? without('method') : undefined),
  },
  {
    at: 'rewrite',
    reads: ['regex_rewrite', 'prefix_regex'],
    faultOf({ rewrite, regex_rewrite: regex, prefix_regex: isRegex }) {
      if (rewrite === undefined) return undefined;
      if (regex !== undefined) return beside('regex_rewrite', 'Keep one of the two.');
      return isRegex && rewrite !== ''
        ? beside('prefix_regex', 'Set regex_rewrite: a regex has no prefix.')
        : undefined;
    },
  },
  {
    at: 'retry_policy',
    reads: ['timeout_ms'],
    faultOf: ({ retry_policy: retry, timeout_ms: whole }) =>
      retry?.perTryTimeoutMs !== undefined && whole !== undefined && whole > 0 && retry.perTryTimeoutMs > whole
        ? {
            message: `gives each attempt ${retry.perTryTimeoutMs} ms, and timeout_ms all of them ${whole} ms`,
            remedy: 'Make per_try_timeout shorter: the whole holds for all attempts together.',
          }
        : undefined,
  },
  {
    at: 'auth_service',
    reads: ['bypass_auth'],
    faultOf: ({ auth_service: service, bypass_auth: bypasses }) =>
      bypasses && service !== undefined ? beside('bypass_auth: true', 'Keep one of the two.') : undefined,
  },
];

function beside(other: string, remedy: string): Fault {
  return { message: `stands beside ${other}`, remedy };
}

function without(other: string): Fault {
  return { message: `says nothing without ${other}`, remedy: `Write ${other}, or remove it.` };
}
