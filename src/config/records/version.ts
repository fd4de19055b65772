/** The rows of a Version: a part of the API that is deprecated, when it ends, and what replaces it. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { field, type Given, lengthFault, optional, text } from '../fields/field.ts';
import { prefixFault, requestedPrefix, withoutTrailingSlash } from '../fields/paths.ts';
import { quote } from '../quote.ts';
import { type PlainRecord, plainReader, recordName } from './kind.ts';

const dateTime = z.iso.datetime({ offset: true });
const date = z.iso.date();

/** RFC 3339; a date alone is its midnight in UTC. Becomes milliseconds since the epoch. */
const instant = text((value) =>
  dateTime.safeParse(value).success || date.safeParse(value).success ? undefined : noInstant(value),
).transform((value) => Date.parse(value));

const link = { schema: text(linkFault), type: 'path or URL' } as const;

/** `deprecatedAtMs` and `endsAtMs` are milliseconds since the epoch; at least one of them is there. */
export const versionFields = {
  name: recordName('v1'),
  prefix: field({
    name: 'prefix',
    schema: text((path) => prefixFault(path) ?? ownPagesFault(path)).transform(requestedPrefix),
    type: 'path',
    docs: 'Whole segments of the path, case-sensitive; of several that match the longest. Never `/` or `/gateway/v0`.',
    example: '/v1',
  }),
  deprecatedAtMs: optional({
    name: 'deprecation',
    schema: instant,
    type: 'date or date and time',
    docs: 'When it is deprecated, past or future. A date is its midnight in UTC; one of the two times is required.',
    example: '2026-06-30T00:00:00Z',
  }),
  endsAtMs: optional({
    name: 'sunset',
    schema: instant,
    type: 'date or date and time',
    docs: 'From when it is gone; not before `deprecation`.',
    example: '2027-06-30T00:00:00Z',
  }),
  successor: optional({
    name: 'successor',
    ...link,
    docs: 'What to use instead: a path of the gateway, or an absolute `http` or `https` URL.',
    example: '/v2/',
  }),
  info: optional({
    name: 'info',
    ...link,
    docs: 'A page for people about it.',
    example: 'https://example.com/v1-is-leaving',
  }),
};

export type Version = PlainRecord<'Version', typeof versionFields>;

export const readVersion = plainReader('Version', versionFields, [
  { at: 'endsAtMs', reads: ['deprecatedAtMs'], faultOf: timesFault },
]);

function timesFault({ deprecatedAtMs, endsAtMs }: Given<typeof versionFields>): Fault | undefined {
  if (deprecatedAtMs === undefined && endsAtMs === undefined) {
    const remedy = 'Write deprecation, sunset or both, for example sunset: 2027-06-30';
    return { message: 'is missing, and so is deprecation', remedy };
  }
  if (deprecatedAtMs === undefined || endsAtMs === undefined || deprecatedAtMs <= endsAtMs) return undefined;
  const remedy = 'A version ends after it is deprecated, or at the same time (RFC 9745 section 4).';
  return { message: 'is before deprecation', remedy };
}

function noInstant(value: string): Fault {
  const remedy =
    'Write a date (midnight in UTC), or date and time with their zone: 2027-06-30, 2027-06-30T12:00:00+02:00';
  return { message: `${quote(value)} is no time`, remedy };
}

/** Without the gateway's own pages the operator could not see what is wrong. */
function ownPagesFault(path: string): Fault | undefined {
  if (!['/', '/gateway', '/gateway/v0'].includes(withoutTrailingSlash(path)) && !path.startsWith('/gateway/v0/'))
    return undefined;
  const remedy = 'Write the path of the version, for example /v1: the pages below /gateway/v0 belong to no version.';
  return { message: `${quote(path)} contains pages of the gateway itself`, remedy };
}

/** What a `Link` header can hold as it is (RFC 8288 section 3). */
const linkLengthMax = 2048;

function linkFault(given: string): Fault | undefined {
  const isPath = /^\/(?!\/)/.test(given);
  const isUrl = /^https?:\/\/[^@]+$/i.test(given) && URL.canParse(given);
  if ((isPath || isUrl) && /^[\x21-\x7e]+$/.test(given) && !/[<>"\\^`{|}]/.test(given))
    return lengthFault(given, linkLengthMax);
  const remedy =
    'Write a path of this gateway (/v2/) or an http or https URL, percent-encoded and without credentials.';
  return { message: 'cannot be linked to', remedy };
}
