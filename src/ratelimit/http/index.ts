/** The HTTP interface of envoyproxy/ratelimit: `POST /json`, `/healthcheck`, `/rlconfig` and `/metrics`. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { LimitDescriptor, LimitDomain } from '#config';
import type { Logger } from '#foundation';
import { CountersUnavailable, checkBounds, InvalidRequest, type Limiter } from '#ratelimit';
import { type Limit, redactedEntry, requestBytesMax } from '#ratelimit/limit';
import { formatJsonDecision, parseJsonRequest } from './json.ts';

export interface RateLimitHttpOptions {
  readonly limiter: Limiter;
  /** Whether the service can decide now. */
  readonly isReady: () => boolean;
  /** Returns the current limits. */
  readonly limits: () => readonly LimitDomain[];
  /** Undefined when there is no `/metrics`. */
  readonly metrics?: (() => Promise<{ readonly contentType: string; readonly text: string }>) | undefined;
  readonly logger: Pick<Logger, 'error'>;
}

/** `POST /json` responds with 200, or 429 for OVER_LIMIT. The body of an error is `{ code, message, detail }`. */
export function createRateLimitHttp(options: RateLimitHttpOptions): RequestListener {
  const resources = new Map(Object.entries(resourcesOf(options)));
  return function handleRateLimitHttp(request, response) {
    const resource = resources.get(request.url?.split('?')[0] ?? '');
    void replyTo(resource, request)
      // If the client disconnected while sending its request, the service has not failed.
      .catch((error: unknown) => (request.complete ? faultOf(error, options.logger) : fault(400)))
      .then((reply) => send(response, reply, request.method === 'HEAD'));
  };
}

interface HttpReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Resource {
  readonly methods: readonly string[];
  readonly reply: (request: IncomingMessage) => HttpReply | Promise<HttpReply>;
}

function resourcesOf({ limiter, isReady, limits, metrics }: RateLimitHttpOptions): Record<string, Resource> {
  const read = (reply: Resource['reply']): Resource => ({ methods: ['GET', 'HEAD'], reply });
  const bodyOf = createBodyReader();
  return {
    '/json': { methods: ['POST'], reply: (request) => decide(limiter, request, bodyOf) },
    '/healthcheck': read(() => (isReady() ? plain(200, 'OK') : plain(500, 'not ready'))),
    '/rlconfig': read(() => plain(200, formatLimits(limits()))),
    ...(metrics && {
      '/metrics': read(async () => {
        const { contentType, text } = await metrics();
        return { status: 200, contentType, body: text };
      }),
    }),
  };
}

async function replyTo(resource: Resource | undefined, request: IncomingMessage): Promise<HttpReply> {
  if (resource === undefined) return fault(404);
  if (resource.methods.includes(request.method ?? '')) return resource.reply(request);
  const allow = resource.methods.join(', ');
  return fault(405, `This resource supports ${allow}.`, { Allow: allow });
}

async function decide(limiter: Limiter, request: IncomingMessage, bodyOf: BodyReader): Promise<HttpReply> {
  const refusal = refusalOf(request);
  if (refusal !== undefined) return refusal;
  const body = await bodyOf(request);
  if (body === undefined)
    return fault(413, `The body may have at most ${requestBytesMax} bytes.`, { Connection: 'close' });
  const rateLimitRequest = parseJsonRequest(body);
  checkBounds(rateLimitRequest);
  const decision = await limiter.shouldRateLimit(rateLimitRequest);
  return {
    status: decision.overallCode === 'OVER_LIMIT' ? 429 : 200,
    contentType: 'application/json',
    body: `${formatJsonDecision(decision)}\n`,
  };
}

/**
 * Rejects requests from web pages, which could use up quota. Browsers send some content types, such as that of a form,
 * without a preflight. This port serves no pages, so a request with an Origin or Sec-Fetch-Site always comes from
 * another site, even if the name of that site resolves to this server. `curl -d` sends the content type of a form.
 */
function refusalOf({ headers }: IncomingMessage): HttpReply | undefined {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined)
    return fault(403, 'Requests from web pages are not allowed.', { Connection: 'close' });
  const [mediaType = ''] = (headers['content-type'] ?? '').split(';');
  if (acceptedTypes.includes(mediaType.trim().toLowerCase())) return undefined;
  return fault(415, 'Send Content-Type: application/json.', { Accept: 'application/json', Connection: 'close' });
}

const acceptedTypes = ['application/json', 'application/x-www-form-urlencoded'];

/** Each may use twice the bytes of the longest body. */
const arrivingMax = 256;

type BodyReader = typeof readBody;

/** Beyond `arrivingMax` incomplete bodies, closes the connection of the oldest. An honest body arrives quickly. */
function createBodyReader(): BodyReader {
  const arriving = new Set<IncomingMessage>();
  return async function readBounded(request) {
    arriving.add(request);
    const [oldest] = arriving;
    if (arriving.size > arrivingMax) oldest?.destroy();
    try {
      return await readBody(request);
    } finally {
      arriving.delete(request);
    }
  };
}

/**
 * Returns undefined if the body is too long. The rest is still read and dropped, because some clients do not read the
 * response before they have sent everything.
 */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  // Copy into one buffer, because every chunk costs an object of 200 bytes, even if clients send single bytes.
  let body = Buffer.allocUnsafe(4096);
  let length = 0;
  // Without the option, leaving the loop would destroy the request and its connection before the response is sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const end = length + chunk.length;
    if (end > requestBytesMax) {
      request.resume();
      return undefined;
    }
    // Double the size to keep the number of copies low.
    if (end > body.length) body = Buffer.concat([body], 2 * end);
    body.set(chunk, length);
    length = end;
  }
  return body.toString('utf8', 0, length);
}

function plain(status: number, body: string): HttpReply {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

const reasons = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  500: 'Internal Server Error',
};

function fault(code: keyof typeof reasons, detail?: string, headers: HttpReply['headers'] = {}): HttpReply {
  const body = `${JSON.stringify({ code, message: `${code}: ${reasons[code]}`, detail })}\n`;
  return { status: code, contentType: 'application/json', body, headers };
}

/** Reveals only errors in the request to the client. */
function faultOf(error: unknown, logger: Pick<Logger, 'error'>): HttpReply {
  if (error instanceof InvalidRequest) return fault(400, error.message);
  if (!(error instanceof CountersUnavailable)) logger.error({ err: error }, 'the rate-limit service could not decide');
  return fault(500, 'The rate-limit service could not decide.');
}

function send(response: ServerResponse, { status, contentType, body, headers }: HttpReply, isHead: boolean): void {
  response.writeHead(status, {
    ...headers,
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(isHead ? undefined : body);
}

/**
 * Formats `/rlconfig` like envoyproxy/ratelimit: `domain.key_value.key: unit=MINUTE requests_per_unit=10`. Leaves out
 * values, which may be secret: this port requires no credentials.
 */
function formatLimits(domains: readonly LimitDomain[]): string {
  const lines = domains.flatMap(({ domain, descriptors }) => linesBelow(domain, descriptors));
  return lines.map((line) => `${line}\n`).join('');
}

function linesBelow(path: string, descriptors: readonly LimitDescriptor[]): string[] {
  return descriptors.flatMap(({ key, value, limits, shareThreshold, descriptors: below }) => {
    const shown = redactedEntry(key, value).slice(key.length + 1);
    const here = `${path}.${key}${value === undefined ? '' : `_${shown}`}`;
    const shared = shareThreshold ? ', share_threshold: true' : '';
    const lines = limits.map(
      (limit) => `${onOneLine(here)}: ${[rateText(limit), ...details(limit)].join(', ')}${shared}`,
    );
    return [...lines, ...linesBelow(here, below)];
  });
}

function rateText({ unit, unitMultiplier, requestsPerUnit, unlimited }: Limit): string {
  if (unlimited) return 'unlimited';
  const multiplier = unitMultiplier === 1 ? '' : ` unit_multiplier=${unitMultiplier}`;
  return `unit=${unit.toUpperCase()}${multiplier} requests_per_unit=${requestsPerUnit}`;
}

function details({ name, replaces, shadowMode, quotaMode, algorithm, burst }: Limit): string[] {
  return [
    ...(name === undefined ? [] : [`name: ${onOneLine(name)}`]),
    ...(replaces.length === 0 ? [] : [`replaces: ${onOneLine(replaces.join(' '))}`]),
    ...(algorithm === 'fixed_window' ? [] : [`algorithm: ${algorithm}`]),
    ...(burst === undefined ? [] : [`burst: ${burst}`]),
    `shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}`,
  ];
}

/** Replaces line breaks, so that a value cannot look like another limit. */
function onOneLine(text: string): string {
  return text.replace(/[\r\n\u2028\u2029]/g, ' ');
}
