/** Version: a part of the API that is on its way out, from when, until when, and what takes its place. */
import * as z from 'zod';
import { complain, envelope, type Fault, strict, text } from './fields.ts';
import type { Version } from './gateway-records.ts';
import { prefixFault, withoutTrailingSlash } from './paths.ts';
import { type RecordKind, recordKind } from './record-kind.ts';

const dateTime = z.iso.datetime({ offset: true });
const date = z.iso.date();

/** Milliseconds since the epoch. */
const instant = text((value) => (isInstant(value) ? undefined : noInstant(value))).transform((value) =>
  Date.parse(value),
);

const fields = strict({
  ...envelope,
  prefix: text((path) => prefixFault(path) ?? ownPagesFault(path)).transform(withoutTrailingSlash),
  deprecation: instant.optional(),
  sunset: instant.optional(),
  successor: text(linkFault).optional(),
  info: text(linkFault).optional(),
}).check((payload) => {
  const { deprecation, sunset } = payload.value;
  if (deprecation === undefined && sunset === undefined) {
    const remedy = 'Write deprecation, sunset or both, for example sunset: 2027-06-30';
    complain(payload, ['sunset'], { message: 'is missing, and so is deprecation', remedy });
  }
  if (deprecation === undefined || sunset === undefined || deprecation <= sunset) return;
  const remedy = 'A version ends after it is deprecated, or at that very time (RFC 9745 section 4).';
  complain(payload, ['sunset'], { message: 'is before deprecation', remedy });
});

/** Every field that a Version may have. */
export const versionFieldNames: readonly string[] = Object.keys(fields.shape);

const examples = {
  apiVersion: 'gateway/v1',
  name: 'v1',
  prefix: '/v1',
  deprecation: '2026-06-30T00:00:00Z',
  sunset: '2027-06-30T00:00:00Z',
  successor: '/v2/',
  info: 'https://example.com/v1-is-leaving',
} as const;

export const versionKind: RecordKind<Version> = recordKind({
  schema: fields,
  examples,
  become: (given, source) => ({
    kind: 'Version',
    name: given.name,
    prefix: given.prefix,
    deprecatedAtMs: given.deprecation,
    endsAtMs: given.sunset,
    successor: given.successor,
    info: given.info,
    source,
  }),
});

/** RFC 3339; a date alone is its midnight in UTC. */
function isInstant(value: string): boolean {
  return dateTime.safeParse(value).success || date.safeParse(value).success;
}

function noInstant(value: string): Fault {
  const remedy =
    'Write a date (midnight in UTC), or date and time with their zone: 2027-06-30, 2027-06-30T12:00:00+02:00';
  return { message: `${JSON.stringify(value)} is no time`, remedy };
}

/** Nobody could see any more what is wrong. */
function ownPagesFault(path: string): Fault | undefined {
  if (!['/', '/gateway', '/gateway/v0'].includes(withoutTrailingSlash(path)) && !path.startsWith('/gateway/v0/'))
    return undefined;
  const remedy = 'Write the path of the version, for example /v1: the pages below /gateway/v0 are of no version.';
  return { message: `${JSON.stringify(path)} holds pages of the gateway itself`, remedy };
}

/** What can stand in a `Link` header as it is (RFC 8288 section 3). */
function linkFault(link: string): Fault | undefined {
  const isPath = /^\/(?!\/)/.test(link);
  const isUrl = /^https?:\/\/[^@]+$/i.test(link) && URL.canParse(link);
  if ((isPath || isUrl) && /^[\x21-\x7e]+$/.test(link) && !/[<>"\\^`{|}]/.test(link)) return undefined;
  const remedy =
    'Write a path of this gateway (/v2/) or an http or https URL, percent-encoded and without credentials.';
  return { message: 'cannot be linked to', remedy };
}
