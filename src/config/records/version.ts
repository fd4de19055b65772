/** The fields of a Version: a deprecated part of the API, when it ends, and what replaces it. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { field, type Given, lengthFault, optional, text, withNames } from '../fields/field.ts';
import { anyCase, jsonSchemaOf } from '../fields/json-schema.ts';
import { pathSchema, prefixFault, requestedPrefix, withoutTrailingSlash } from '../fields/paths.ts';
import { quote } from '../quote.ts';
import { nameField, type PlainRecord, plainReader } from './kind.ts';

const dateTime = z.iso.datetime({ offset: true });
const date = z.iso.date();

/** A time in RFC 3339 format, or a date, which means midnight UTC. Converted to milliseconds since the epoch. */
const instant = text(
  (value) => (dateTime.safeParse(value).success || date.safeParse(value).success ? undefined : notATime(value)),
  () => ({ anyOf: [dateTime, date].map((form) => ({ pattern: jsonSchemaOf(form)['pattern'] })) }),
).transform((value) => Date.parse(value));

const linkLengthMax = 2048;
/** The printable characters that a `Link` header can contain without escaping. */
const linkCharacters = /^[!#-;=?-Z[\]_a-z~]+$/;
const linkSchema = {
  maxLength: linkLengthMax,
  allOf: [{ pattern: linkCharacters.source }, { pattern: `^(?:/(?:[^/]|$)|${anyCase('http')}[sS]?://)` }],
};

const link = { schema: text(linkFault, linkSchema), type: 'path or URL' } as const;

/** `deprecatedAtMs` and `endsAtMs` are in milliseconds since the epoch. At least one of them is set. */
export const versionFields = withNames({
  name: nameField('v1'),
  prefix: field({
    schema: text((path) => prefixFault(path) ?? ownPagesFault(path), pathSchema).transform(requestedPrefix),
    type: 'path',
    docs: 'Matches whole segments of the path, case-sensitive; the longest match wins. Cannot be `/` or below `/gateway/v0`.',
    example: '/v1',
  }),
  deprecatedAtMs: optional({
    name: 'deprecation',
    schema: instant,
    type: 'date or date and time',
    docs: 'When it is deprecated, in the past or future. A date means midnight UTC. This or `sunset` is required.',
    example: '2026-06-30T00:00:00Z',
  }),
  endsAtMs: optional({
    name: 'sunset',
    schema: instant,
    type: 'date or date and time',
    docs: 'When it ends; not before `deprecation`.',
    example: '2027-06-30T00:00:00Z',
  }),
  successor: optional({
    ...link,
    docs: 'The replacement: a path of the gateway, or an absolute `http` or `https` URL.',
    example: '/v2/',
  }),
  info: optional({
    ...link,
    docs: 'A page that informs users about the deprecation.',
    example: 'https://example.com/v1-is-leaving',
  }),
});

export type Version = PlainRecord<'Version', typeof versionFields>;

export const readVersion = plainReader('Version', versionFields, [
  {
    at: 'endsAtMs',
    reads: ['deprecatedAtMs'],
    faultOf: timesFault,
    present: { of: ['deprecatedAtMs', 'endsAtMs'], min: 1 },
  },
]);

function timesFault({ deprecatedAtMs, endsAtMs }: Given<typeof versionFields>): Fault | undefined {
  if (deprecatedAtMs === undefined && endsAtMs === undefined) {
    const remedy = 'Set deprecation, sunset or both, for example sunset: 2027-06-30';
    return { message: 'is missing, and so is deprecation', remedy };
  }
  if (deprecatedAtMs === undefined || endsAtMs === undefined || deprecatedAtMs <= endsAtMs) return undefined;
  const remedy = 'A version cannot end before it is deprecated (RFC 9745 section 4).';
  return { message: 'is before deprecation', remedy };
}

function notATime(value: string): Fault {
  const remedy = 'Write a date (midnight UTC), or a date and time with a zone: 2027-06-30, 2027-06-30T12:00:00+02:00';
  return { message: `${quote(value)} is not a valid date or time`, remedy };
}

/** Rejects prefixes of the gateway's own pages, which operators need even after a version has ended. */
function ownPagesFault(path: string): Fault | undefined {
  if (!['/', '/gateway', '/gateway/v0'].includes(withoutTrailingSlash(path)) && !path.startsWith('/gateway/v0/'))
    return undefined;
  const remedy = 'Write the path of the version, for example /v1. The pages below /gateway/v0 are not versioned.';
  return { message: `${quote(path)} contains pages of the gateway itself`, remedy };
}

/** Accepts targets that a `Link` header can contain without escaping (RFC 8288 section 3). */
function linkFault(given: string): Fault | undefined {
  const isPath = /^\/(?!\/)/.test(given);
  const isUrl = /^https?:\/\/[^@]+$/i.test(given) && URL.canParse(given);
  if ((isPath || isUrl) && linkCharacters.test(given)) return lengthFault(given, linkLengthMax);
  const remedy =
    'Write a path of this gateway (/v2/) or an http or https URL, percent-encoded and without credentials.';
  return { message: 'is not a valid link', remedy };
}
