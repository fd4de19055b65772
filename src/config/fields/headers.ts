/** Header names, header maps and added headers: what no field may set, and the variables of Envoy that are filled in. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { complain, field, lengthFault, mapOf, text } from './field.ts';
import { commaList, either, flag } from './values.ts';

export interface Named<T> {
  readonly name: string;
  readonly value: T;
}

/** An RFC 9110 section 5.1 field name; becomes lower case, in which `faultOf` gets it. */
export function headerName(faultOf: (name: string) => Fault | undefined = () => undefined) {
  return text(headerNameFault)
    .transform((name) => name.toLowerCase())
    .pipe(text(faultOf));
}

const nameLengthMax = 256;

/** Of all headers that one field of a record adds, names and values. */
const headersLengthMax = 8192;

export function headerNameFault(name: string): Fault | undefined {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return lengthFault(name, nameLengthMax);
  return {
    message: `${quote(name)} is not a header name`,
    remedy: 'Write the name alone, for example X-Travel-User: no colon, no spaces.',
  };
}

/** A map by header name, as a list with names in lower case; refuses `X-A` beside `x-a`. */
export function headerMap<T>(value: z.ZodType<T>, faultOf: (name: string) => Fault | undefined = () => undefined) {
  return z
    .record(z.string(), value)
    .check((payload) => {
      const seen = new Set<string>();
      for (const key of Object.keys(payload.value)) {
        const name = key.toLowerCase();
        complain(payload, [key], headerNameFault(key) ?? faultOf(name) ?? (seen.has(name) ? repeated : undefined));
        seen.add(name);
      }
    })
    .transform((map): readonly Named<T>[] =>
      Object.entries(map).map(([name, one]) => ({ name: name.toLowerCase(), value: one })),
    );
}

const repeated: Fault = {
  message: 'appears twice, in different case',
  remedy: 'Keep one of the two: header names are the same in upper and lower case.',
};

/** What a header's value cannot hold (RFC 9110 section 5.5); with a line break it would be two headers. */
export function headerValueFault(value: string): Fault | undefined {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value) && value.trim() === value) return undefined;
  return {
    message: 'holds what no header value can hold',
    remedy: 'Write one line without control characters, without spaces at its ends, in letters of Latin-1.',
  };
}

/** Headers in which a client sends its credentials. */
export const credentialHeaders: readonly string[] = ['authorization', 'cookie', 'proxy-authorization'];

/** Headers that frame a message or belong to one connection (RFC 9110 sections 7.2, 7.6.1, 8.6): the gateway sets them. */
export function framingFault(name: string): Fault | undefined {
  if (name === 'host') return { message: '"host" addresses the request', remedy: 'Set host_rewrite instead.' };
  if (!framing.has(name)) return undefined;
  return {
    message: `"${name}" frames the message or belongs to one connection`,
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

/** `name` in lower case. Without `append` the value replaces what the header had. */
export interface HeaderValue {
  readonly name: string;
  readonly value: string;
  readonly append: boolean;
}

/** Headers are removed first, then added. */
export interface HeaderRules {
  readonly add: readonly HeaderValue[];
  /** Lower-case names. */
  readonly remove: readonly string[];
}

const addedValue = text(addedValueFault);

/** A bare text is appended, as in Emissary. */
const addition = either<{ value: string; append: boolean }>((given) => (typeof given === 'string' ? bare : long));
const bare = addedValue.transform((value) => ({ value, append: true }));
const long = mapOf({
  value: field({ name: 'value', schema: addedValue, type: 'text', docs: '', example: 'gateway' }),
  append: field({ name: 'append', ...flag, default: true, docs: '' }),
});

/** `{ X-Served-By: gateway }`, or with `{ value, append }` in place of the text. */
export const addedHeaders = headerMap(addition, framingFault)
  .transform((map): readonly HeaderValue[] => map.map(({ name, value }) => ({ name, ...value })))
  .check((payload) => {
    const length = payload.value.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
    complain(payload, [], lengthFault({ length }, headersLengthMax));
  });

/** A list that becomes the value of one header. */
export function joinedList(list: z.ZodType<string[]>) {
  return list.check((payload) => complain(payload, [], lengthFault(payload.value.join(', '), headersLengthMax)));
}

export const removedHeaders = commaList(headerName(framingFault));

/** Filled in between percent signs. Envoy has more; they would reach the service as they are. */
const variables = ['PROTOCOL', 'DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT'] as const;

export type HeaderVariable = (typeof variables)[number];

/** The first command of Envoy in a value that is not filled in, such as `%START_TIME%`. */
export function unknownCommand(value: string): string | undefined {
  const known: readonly string[] = variables;
  const commands = value.match(/%[A-Z][A-Z_]+(?:\([^)]*\))?(?::\d+)?%/g) ?? [];
  return commands.find((command) => !known.includes(command.slice(1, -1)));
}

/** `%REQ(…)%`: what is between the parentheses may be a secret. */
function withoutArguments(command: string): string {
  return command.replace(/\(.*\)/, '(…)');
}

function addedValueFault(given: string): Fault | undefined {
  const command = unknownCommand(given);
  if (command === undefined) return headerValueFault(given);
  return {
    message: `holds ${withoutArguments(command)}, which is not filled in`,
    remedy: `Write a fixed value, or one of ${variables.map((name) => `%${name}%`).join(', ')}.`,
  };
}
