/** `sticky`: what keeps a client on one of the mappings that share requests by weight. */

import { quote } from '../quote.ts';
import { type Given, mapOf, optional, type Rule, text } from './field.ts';
import { headerName } from './headers.ts';
import { duration, isToken, tokenSchema } from './values.ts';

/** The value of a header, by its lower-case name, or of a cookie, which new clients get. */
export type Sticky =
  | { readonly kind: 'header'; readonly name: string }
  /** `ttlMs`: how long browsers keep the cookie. Undefined for the time that they are open. */
  | { readonly kind: 'cookie'; readonly name: string; readonly ttlMs: number | undefined };

const cookieName = text(
  (name) =>
    isToken(name)
      ? undefined
      : { message: `${quote(name)} is not the name of a cookie`, remedy: 'For example: sticky: { cookie: part }' },
  tokenSchema,
);

const stickyFields = {
  cookie: optional({ schema: cookieName }),
  ttl: optional({ schema: duration() }),
  header: optional({ schema: headerName() }),
};

const rules: readonly Rule<typeof stickyFields>[] = [
  {
    at: 'header',
    reads: ['cookie'],
    present: { of: ['cookie', 'header'], min: 1, max: 1 },
    faultOf: ({ cookie, header }: Given<typeof stickyFields>) =>
      cookie === undefined || header === undefined
        ? undefined
        : { message: 'cannot be combined with cookie', remedy: 'Keep one of the two.' },
  },
  {
    at: 'cookie',
    reads: ['header'],
    faultOf: ({ cookie, header }: Given<typeof stickyFields>) =>
      cookie === undefined && header === undefined
        ? { message: 'is missing', remedy: 'Write cookie: part, or header: with the name of a header.' }
        : undefined,
  },
  {
    at: 'ttl',
    reads: ['header'],
    faultOf: ({ ttl, header }: Given<typeof stickyFields>) =>
      ttl === undefined || header === undefined
        ? undefined
        : { message: 'has no effect without cookie', remedy: 'Remove it.' },
  },
];

export const sticky = mapOf(stickyFields, rules).transform(
  ({ cookie, ttl, header = '' }): Sticky =>
    cookie === undefined ? { kind: 'header', name: header } : { kind: 'cookie', name: cookie, ttlMs: ttl },
);
