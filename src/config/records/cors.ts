/** `cors`: the origins that may use a Mapping from a browser, and what they may send and read. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { field, type Given, mapOf, optional, type Rule, text, type ValuesOf } from '../fields/field.ts';
import { headerName, joinedList } from '../fields/headers.ts';
import { originFault, originSchema } from '../fields/origins.ts';
import { commaList, either, filled, methodFault, methodSchema, parseDuration, wholeNumber } from '../fields/values.ts';

const seconds = wholeNumber(0, 31_536_000);
const secondsForm = /^\d{1,10}$/;
const secondsText = text(secondsFault, { pattern: secondsForm.source }).transform(Number).pipe(seconds);

const headerList = joinedList(commaList(headerName()));

const fields = {
  origins: field({
    schema: filled(commaList(text(originFault, originSchema)), 'Name an origin: origins: [https://app.example.com]'),
  }),
  methods: field({
    schema: joinedList(commaList(text(methodFault, methodSchema))),
    default: ['GET', 'HEAD', 'POST'],
  }),
  /** The headers that a script may send, and those that it may read, in addition to the safelisted ones. */
  headers: field({ schema: headerList, default: [] }),
  exposedHeaders: field({ schema: headerList, default: [] }),
  credentials: field({ schema: z.boolean(), default: false }),
  /** How long browsers may cache the response to a preflight. Without it, their own default applies. */
  maxAgeSeconds: optional({
    name: 'max_age',
    schema: either((value) => (typeof value === 'string' ? secondsText : seconds)),
  }),
};

export type CorsRule = ValuesOf<typeof fields>;

/** With credentials, browsers take a star literally and not as a wildcard (Fetch standard, section 3.3.4). */
const starRules = (['origins', 'methods', 'headers', 'exposedHeaders'] as const).map(
  (key): Rule<typeof fields> => ({
    at: key,
    reads: ['credentials'],
    faultOf: (given) =>
      given.credentials && given[key]?.includes('*')
        ? {
            message: 'contains "*", which cannot be combined with credentials: true',
            remedy: 'Browsers do not accept that: list the values one by one.',
          }
        : undefined,
  }),
);

export const cors = mapOf(fields, [{ at: 'origins', faultOf: starAmongOthers }, ...starRules]);

function secondsFault(written: string): Fault | undefined {
  if (secondsForm.test(written)) return undefined;
  const ms = parseDuration(written);
  const remedy = ms === undefined ? 'For example: max_age: 600' : `Write ${Math.ceil(ms / 1000)}, without a unit.`;
  return { message: 'must be a number of seconds', remedy };
}

function starAmongOthers({ origins = [] }: Given<typeof fields>): Fault | undefined {
  if (!origins.includes('*') || origins.length === 1) return undefined;
  return {
    message: 'contains "*", which cannot be combined with other origins',
    remedy: 'Write "*" alone, or list the origins.',
  };
}
