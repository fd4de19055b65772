/** `cors`: which origins may use a Mapping from a browser, and how. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { field, type Given, mapOf, optional, type Rule, text, type ValuesOf } from '../fields/field.ts';
import { headerName, joinedList } from '../fields/headers.ts';
import { commaList, either, flag, methodFault, refuseEmpty, wholeNumber } from '../fields/values.ts';
import { mayHoldSecret, quote } from '../quote.ts';

const seconds = wholeNumber(0, 31_536_000);
const secondsText = z
  .string()
  .transform((written) => (/^\d{1,10}$/.test(written) ? Number(written) : Number.NaN))
  .pipe(seconds);

function headerList(name: string, docs: string) {
  return field({
    name,
    schema: joinedList(commaList(headerName())),
    type: 'list',
    default: [],
    docs,
    example: '[X-Plan]',
  });
}

const fields = {
  origins: field({
    name: 'origins',
    schema: commaList(text(originFault)).check(refuseEmpty('Name an origin: origins: [https://app.example.com]')),
    type: 'list',
    docs: 'Origins such as `https://app.example`, or `*` alone.',
    example: '[https://app.example.com]',
  }),
  methods: field({
    name: 'methods',
    schema: joinedList(commaList(text(methodFault))),
    type: 'list',
    default: ['GET', 'HEAD', 'POST'],
    docs: 'That a script may use.',
    example: '[GET, POST]',
  }),
  headers: headerList('headers', 'That a script may send; empty: the safelisted ones.'),
  exposedHeaders: headerList('exposed_headers', 'That a script may read; empty: the safelisted ones.'),
  credentials: field({ name: 'credentials', ...flag, default: false, docs: 'Cookies and Authorization are sent.' }),
  maxAgeSeconds: optional({
    name: 'max_age',
    schema: either<number>((value) => (typeof value === 'string' ? secondsText : seconds)),
    type: 'seconds',
    docs: "How long a preflight's answer may be remembered; undefined: the browser's own default.",
    example: '600',
  }),
};

export type CorsRule = ValuesOf<typeof fields>;

/** With credentials a star means an origin, method or header of that name (Fetch standard, section 3.3.4), and never any. */
const starRules = (['origins', 'methods', 'headers', 'exposedHeaders'] as const).map(
  (key): Rule<typeof fields> => ({
    at: key,
    reads: ['credentials'],
    faultOf: (given) =>
      given.credentials && given[key]?.includes('*')
        ? {
            message: 'is "*", which cannot be combined with credentials: true',
            remedy: 'Browsers refuse that: list them one by one.',
          }
        : undefined,
  }),
);

export const cors: z.ZodType<CorsRule> = mapOf(fields, [{ at: 'origins', faultOf: starBesideOthers }, ...starRules]);

function starBesideOthers({ origins = [] }: Given<typeof fields>): Fault | undefined {
  if (!origins.includes('*') || origins.length === 1) return undefined;
  return { message: 'holds "*" beside others', remedy: 'Write "*" alone, or list the origins.' };
}

/** RFC 6454 section 6.2, as browsers write it in `Origin`. */
function originFault(origin: string): Fault | undefined {
  if (origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)) return undefined;
  const meant = URL.canParse(origin) && !mayHoldSecret(origin) ? new URL(origin).origin : 'null';
  return {
    message: `${quote(origin)} is not an origin`,
    remedy: meant === 'null' ? 'Write scheme and host: "https://app.example.com".' : `Write it as ${quote(meant)}.`,
  };
}
