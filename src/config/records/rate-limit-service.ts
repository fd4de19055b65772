/** The fields of a RateLimitService: the service that limits labelled requests, over gRPC or in this process. */
import * as z from 'zod';
import { requestBounds } from '#ratelimit/limit';
import type { Fault } from '../errors.ts';
import { field, lengthFault, withNames } from '../fields/field.ts';
import { headerName } from '../fields/headers.ts';
import { serviceReference } from '../fields/service-reference.ts';
import { flag, milliseconds, singleLine } from '../fields/values.ts';
import { quote } from '../quote.ts';
import { nameField, type PlainRecord, plainReader } from './kind.ts';

/** The header names that envoyproxy/ratelimit and Envoy use. */
const limitHeaders = ['ratelimit', 'x-ratelimit'].flatMap((start) =>
  ['limit', 'remaining', 'reset'].map((end) => `${start}-${end}`),
);

const responseFraming: readonly string[] = ['connection', 'content-encoding', 'content-length', 'transfer-encoding'];

export const rateLimitServiceFields = withNames({
  name: nameField('ratelimit'),
  service: field({
    schema: serviceReference(['grpc']),
    type: 'service reference',
    docs: '`ratelimit` is the limiter in this process, `grpc://name` a remote one.',
    example: 'ratelimit',
  }),
  domain: field({
    schema: singleLine((domain) => lengthFault(domain, requestBounds.domain), { maxLength: requestBounds.domain }),
    type: 'text',
    default: 'gateway',
    docs: 'The domain whose labels are sent.',
    example: 'gateway',
  }),
  timeoutMs: field({
    ...milliseconds(),
    default: 100,
    docs: 'How long to wait for a remote service. The limiter in this process waits only for Redis, at most `REDIS_TIMEOUT_MS`.',
    example: '100',
  }),
  failureModeDeny: field({
    ...flag,
    default: false,
    docs: 'Rejects requests with a 503 when the rate-limit service does not respond.',
  }),
  headers: field({
    schema: z.enum(['ietf', 'draft_03', 'none']),
    type: 'text',
    default: 'ietf',
    docs: 'The headers that report limits to clients: `RateLimit` and `RateLimit-Policy` (`ietf`), `X-RateLimit-*` as in Envoy (`draft_03`), or `none`.',
    example: 'draft_03',
  }),
  allowedResponseHeaders: field({
    schema: z.array(headerName(responseFramingFault, responseFraming)),
    type: 'list',
    default: limitHeaders,
    shownDefault: 'those of Envoy and envoyproxy/ratelimit',
    docs: 'Headers that it may add to a response.',
    example: '[RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset]',
  }),
});

export type RateLimitService = PlainRecord<'RateLimitService', typeof rateLimitServiceFields>;

/**
 * `ietf` stands for `RateLimit` and `RateLimit-Policy`, `draft_03` for Envoy's `X-RateLimit-Limit`, `-Remaining` and
 * `-Reset`.
 */
export type RateLimitHeaderStyle = RateLimitService['headers'];

export const readRateLimitService = plainReader('RateLimitService', rateLimitServiceFields);

/** Rejects headers that clients need to read the response correctly. */
function responseFramingFault(name: string): Fault | undefined {
  if (!responseFraming.includes(name)) return undefined;
  const remedy = 'Remove it: the service may only add headers that do not change how the response is read.';
  return { message: `${quote(name)} frames the response`, remedy };
}
