/** The rows of a RateLimitService: which service decides about labelled requests, over gRPC or in this process. */
import * as z from 'zod';
import type { Fault } from '../errors.ts';
import { field, lengthFault } from '../fields/field.ts';
import { headerName } from '../fields/headers.ts';
import { flag, label, milliseconds, serviceReference } from '../fields/values.ts';
import { requestBounds } from '../limits/request-bounds.ts';
import { quote } from '../quote.ts';
import { type PlainRecord, plainReader, recordName } from './kind.ts';

/** The names that envoyproxy/ratelimit and Envoy use. */
const limitHeaders = ['ratelimit', 'x-ratelimit'].flatMap((start) =>
  ['limit', 'remaining', 'reset'].map((end) => `${start}-${end}`),
);

export const rateLimitServiceFields = {
  name: recordName('ratelimit'),
  service: field({
    name: 'service',
    schema: serviceReference(['grpc']),
    type: 'service reference',
    docs: '`ratelimit` is the limiter of this process, `grpc://name` one across the network.',
    example: 'ratelimit',
  }),
  domain: field({
    name: 'domain',
    schema: label((domain) => lengthFault(domain, requestBounds.domain)),
    type: 'text',
    default: 'gateway',
    docs: 'Labels of this domain are sent.',
    example: 'gateway',
  }),
  timeoutMs: field({ name: 'timeout_ms', ...milliseconds(), default: 100, docs: 'Until its answer.', example: '100' }),
  failureModeDeny: field({
    name: 'failure_mode_deny',
    ...flag,
    default: false,
    docs: 'Answers 503 when it gives no answer.',
  }),
  headers: field({
    name: 'headers',
    schema: z.enum(['ietf', 'draft_03', 'none']),
    type: 'text',
    default: 'ietf',
    docs: '`ietf`: `RateLimit` and `RateLimit-Policy`; `draft_03`: `X-RateLimit-*`, as Envoy has them; `none`.',
    example: 'draft_03',
  }),
  allowedResponseHeaders: field({
    name: 'allowed_response_headers',
    schema: z.array(headerName(framingFault)),
    type: 'list',
    default: limitHeaders,
    shownDefault: 'what Envoy and envoyproxy/ratelimit write',
    docs: 'Headers that it may add to an answer.',
    example: '[RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset]',
  }),
};

export type RateLimitService = PlainRecord<'RateLimitService', typeof rateLimitServiceFields>;

/** `ietf`: `RateLimit` and `RateLimit-Policy`; `draft_03`: `X-RateLimit-Limit`, `-Remaining`, `-Reset` as Envoy writes them. */
export type RateLimitHeaderStyle = RateLimitService['headers'];

export const readRateLimitService = plainReader('RateLimitService', rateLimitServiceFields);

/** With another value in one of these the client could not read the answer. */
function framingFault(name: string): Fault | undefined {
  if (!['connection', 'content-encoding', 'content-length', 'transfer-encoding'].includes(name)) return undefined;
  const remedy = 'Remove it: the service can add headers that describe the request, not the answer.';
  return { message: `${quote(name)} frames the answer`, remedy };
}
