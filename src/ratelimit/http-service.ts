/** The rate-limit service over HTTP, for curl and for what speaks no gRPC; with health, limits and metrics. */
import { type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http';
import type { LimitDomain } from '#config';
import { checkBounds } from './check-request.ts';

import { formatJsonDecision, parseJsonRequest } from './json-protocol.ts';
import { CountersUnavailable, InvalidRequest, type Limiter, type Logger } from './limiter.ts';
import { formatLimits } from './limits-text.ts';

export interface RateLimitHttpOptions {
  readonly limiter: Limiter;
  /** Whether the service can decide now. */
  readonly isReady: () => boolean;
  /** The limits in force. */
  readonly limits: () => readonly LimitDomain[];
  /** Undefined: no `/metrics`. */
  readonly metrics?: { readonly contentType: string; readonly text: () => Promise<string> } | undefined;
  readonly logger: Pick<Logger, 'error'>;
}

/**
 * `POST /json` (200, or 429 for OVER_LIMIT), `GET /healthcheck`, `/rlconfig` and `/metrics`, as envoyproxy/ratelimit has
 * them. Errors are `{ code, message, detail }`. The content type of a request does not matter.
 */
export function createRateLimitHttp(options: RateLimitHttpOptions): RequestListener {
  const resources = new Map(Object.entries(resourcesOf(options)));
  return function answerRateLimitHttp(request, response) {
    const resource = resources.get(request.url?.split('?')[0] ?? '');
    void answerOf(resource, request)
      // A client that left while it was still sending hears nothing more, and is no failure of ours.
      .catch((error: unknown) => (request.complete ? faultOf(error, options.logger) : fault(400)))
      .then((answer) => send(response, answer, request.method === 'HEAD'));
  };
}

/** The largest request within the bounds of the protocol, and then some. */
const bodyBytesMax = 1_048_576;

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Resource {
  readonly methods: readonly string[];
  readonly answer: (request: IncomingMessage) => Answer | Promise<Answer>;
}

function resourcesOf({ limiter, isReady, limits, metrics }: RateLimitHttpOptions): Record<string, Resource> {
  const read = (answer: Resource['answer']): Resource => ({ methods: ['GET', 'HEAD'], answer });
  return {
    '/json': { methods: ['POST'], answer: (request) => decide(limiter, request) },
    '/healthcheck': read(() => (isReady() ? plain(200, 'OK') : plain(500, 'not ready'))),
    '/rlconfig': read(() => plain(200, formatLimits(limits()))),
    ...(metrics && {
      '/metrics': read(async () => ({ status: 200, contentType: metrics.contentType, body: await metrics.text() })),
    }),
  };
}

async function answerOf(resource: Resource | undefined, request: IncomingMessage): Promise<Answer> {
  if (resource === undefined) return fault(404);
  if (resource.methods.includes(request.method ?? '')) return resource.answer(request);
  const allow = resource.methods.join(', ');
  return fault(405, `This resource takes ${allow}.`, { Allow: allow });
}

async function decide(limiter: Limiter, request: IncomingMessage): Promise<Answer> {
  const body = await readBody(request);
  if (body === undefined) return fault(413, `The body is longer than ${bodyBytesMax} bytes.`, { Connection: 'close' });
  const asked = parseJsonRequest(body);
  checkBounds(asked);
  const decision = await limiter.shouldRateLimit(asked);
  return {
    status: decision.overallCode === 'OVER_LIMIT' ? 429 : 200,
    contentType: 'application/json',
    body: formatJsonDecision(decision),
  };
}

/** Undefined when it is too long: what is left of it is read, or the answer would not be, and thrown away. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop would destroy the request, and its connection with it, before the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) {
      request.resume();
      return undefined;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function plain(status: number, body: string): Answer {
  return { status, contentType: 'text/plain; charset=utf-8', body };
}

function fault(code: number, detail?: string, headers: Answer['headers'] = {}): Answer {
  const body = JSON.stringify({ code, message: `${code}: ${STATUS_CODES[code]}`, detail });
  return { status: code, contentType: 'application/json', body, headers };
}

/** Only what the asker did wrong is for the asker to read. */
function faultOf(error: unknown, logger: Pick<Logger, 'error'>): Answer {
  if (error instanceof InvalidRequest) return fault(400, error.message);
  if (!(error instanceof CountersUnavailable)) logger.error({ err: error }, 'the rate-limit service could not decide');
  return fault(500, 'The rate-limit service could not decide.');
}

function send(response: ServerResponse, { status, contentType, body, headers }: Answer, isHead: boolean): void {
  response.writeHead(status, {
    ...headers,
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(isHead ? undefined : body);
}
