/** Header names, header maps and added headers, with the headers that no field may set and the supported variables. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { field, lengthFault, mapOf, reportFault, text } from './field.ts';
import { described, type JsonSchema, otherThan } from './json-schema.ts';
import { commaList, either, isToken, tokenSchema } from './values.ts';

export interface Named<T> {
  readonly name: string;
  readonly value: T;
}

/** A field name (RFC 9110 section 5.1), converted to lower case before `faultOf` checks it. */
export function headerName(
  faultOf: (name: string) => Fault | undefined = () => undefined,
  excluded: Iterable<string> = [],
) {
  return text(headerNameFault, nameSchema(excluded))
    .transform((name) => name.toLowerCase())
    .pipe(text(faultOf));
}

const nameLengthMax = 256;

/** What JSON Schema can say about a header name that is none of these. */
export function nameSchema(excluded: Iterable<string> = []): JsonSchema {
  const names = [...excluded];
  return { ...tokenSchema, maxLength: nameLengthMax, ...(names.length > 0 && otherThan(names)) };
}

/** The maximum total length in bytes of the headers that one field of a record adds, names and values together. */
const headersLengthMax = 8192;

export function headerNameFault(name: string): Fault | undefined {
  if (isToken(name)) return lengthFault(name, nameLengthMax);
  return {
    message: `${quote(name)} is not a header name`,
    remedy: name.startsWith(':')
      ? 'Write host, method or prefix instead.'
      : 'Write the name alone, for example X-Travel-User: no colon, no spaces.',
  };
}

/** A map by header name, converted to a list with lower-case names. Rejects names that differ only in case. */
export function headerMap<T, Input>(
  value: z.ZodType<T, Input>,
  faultOf: (name: string) => Fault | undefined = () => undefined,
  excluded: Iterable<string> = [],
) {
  const map = z
    .record(z.string(), value)
    .check((payload) => {
      const seen = new Set<string>();
      for (const key of Object.keys(payload.value)) {
        const name = key.toLowerCase();
        reportFault(payload, [key], headerNameFault(key) ?? faultOf(name) ?? (seen.has(name) ? repeated : undefined));
        seen.add(name);
      }
    })
    .transform((map): readonly Named<T>[] =>
      Object.entries(map).map(([name, one]) => ({ name: name.toLowerCase(), value: one })),
    );
  return described(map, { propertyNames: nameSchema(excluded) });
}

const repeated: Fault = {
  message: 'appears twice, in different case',
  remedy: 'Keep one of the two: header names are case-insensitive.',
};

/**
 * Rejects characters that a header value cannot contain (RFC 9110 section 5.5). A line break would start another
 * header. Other text is sent as UTF-8.
 */
export function headerValueFault(value: string): Fault | undefined {
  if (valueForm.test(value) && value.trim() === value && value.isWellFormed()) return undefined;
  return {
    message: 'is not a valid header value',
    remedy: 'Write a single line of text, without control characters and without leading or trailing spaces.',
  };
}

const valueForm = /^[\t\x20-\x7e\x80-\uffff]*$/;

/** The headers in which clients send credentials. */
export const credentialHeaders: readonly string[] = ['authorization', 'cookie', 'proxy-authorization'];

/**
 * Rejects headers that frame a message or apply to one connection (RFC 9110 sections 7.2, 7.6.1, 8.6): the gateway sets
 * them.
 */
export function framingFault(name: string): Fault | undefined {
  if (name === 'host') return { message: '"host" addresses the request', remedy: 'Set host_rewrite instead.' };
  if (!framing.has(name)) return undefined;
  return {
    message: `"${name}" frames the message or applies to one connection only`,
    remedy: 'Remove it: the gateway sets it on each connection.',
  };
}

const framing: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The names that `framingFault` rejects. */
export const framingHeaders: readonly string[] = ['host', ...framing];

/** A header to add; `name` is lower-case. Without `append`, the value replaces the existing ones. */
export interface HeaderValue {
  readonly name: string;
  readonly value: string;
  readonly append: boolean;
}

/** Headers to add and remove. Removals come first. */
export interface HeaderRules {
  readonly add: readonly HeaderValue[];
  /** Lower-case names. */
  readonly remove: readonly string[];
}

const addedValue = text(addedValueFault, { pattern: valueForm.source });

/** Plain text is appended, as in Emissary. */
const addition = either((given) => (typeof given === 'string' ? bare : long));
const bare = addedValue.transform((value) => ({ value, append: true }));
const long = mapOf({
  value: field({ schema: addedValue }),
  append: field({ schema: z.boolean(), default: true }),
});

/** Headers to add: `{ X-Served-By: gateway }`, or `{ X-Served-By: { value: gateway, append: false } }`. */
export const addedHeaders = headerMap(addition, framingFault, framingHeaders)
  .transform((map): readonly HeaderValue[] => map.map(({ name, value }) => ({ name, ...value })))
  .check((payload) => {
    const length = payload.value.reduce((sum, { name, value }) => sum + name.length + Buffer.byteLength(value), 0);
    reportFault(payload, [], lengthFault({ length }, headersLengthMax, 'bytes'));
  });

/** Bounds a list whose items become the value of a single header. */
export function joinedList<Input>(list: z.ZodType<string[], Input>) {
  return list.check((payload) => reportFault(payload, [], lengthFault(payload.value.join(', '), headersLengthMax)));
}

export const removedHeaders = commaList(headerName(framingFault, framingHeaders));

/** The supported variables, written between percent signs. Envoy has more, which would reach the service unexpanded. */
const variables = ['PROTOCOL', 'DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT'] as const;

export type HeaderVariable = (typeof variables)[number];

/** Returns the first of Envoy's variables in a value that is not supported here, such as `%START_TIME%`. `%%` is none. */
export function unsupportedVariable(value: string): string | undefined {
  const known: readonly string[] = ['', ...variables];
  // No parenthesis within others, so that the time for a long text of them does not grow with its square.
  const found = value.match(/%%|%[A-Z][A-Z_]+(?:\([^()]*\))?(?::\d+)?%/g) ?? [];
  return found.find((variable) => !known.includes(variable.slice(1, -1)));
}

/** Replaces the arguments of a variable with an ellipsis, as in `%REQ(…)%`, because they may be a secret. */
function withoutArguments(variable: string): string {
  return variable.replace(/\(.*\)/, '(…)');
}

function addedValueFault(given: string): Fault | undefined {
  const variable = unsupportedVariable(given);
  if (variable === undefined) return headerValueFault(given);
  return {
    message: `contains ${withoutArguments(variable)}, which is not supported`,
    remedy: `Write a fixed value, or use one of ${variables.map((name) => `%${name}%`).join(', ')}.`,
  };
}
