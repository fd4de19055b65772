/** The auth service across HTTP: asked on the request's own path, heard on 200 alone (Envoy's ext_authz over HTTP). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import type { AuthAnswer } from '#auth';
import type { AskAuth } from './authenticate.ts';
import { forwardedHeaders } from './upstream-headers.ts';

export interface AuthOverHttpOptions {
  /** Scheme, host and port, asked for at each request since a listener's port may be known late. */
  readonly origin: () => string;
  readonly dispatcher: Dispatcher;
  readonly timeoutMs: number;
  /** Lower-case names that a refusal may carry to the client beside the usual ones. */
  readonly allowedHeaders: readonly string[];
}

/** What the auth service is told besides method, path and query; `accept`, since a refusal goes to the client as it is. */
const sentHeaders = ['accept', 'authorization', 'cookie', 'from', 'proxy-authorization', 'user-agent'];

const refusalHeaders = [
  'content-type',
  'location',
  'proxy-authenticate',
  'retry-after',
  'set-cookie',
  'www-authenticate',
];

const refusalBytesMax = 64 * 1024;

export function createAuthOverHttp(options: AuthOverHttpOptions): AskAuth {
  const passed = [...refusalHeaders, ...options.allowedHeaders];
  return async function authOverHttp(ctx) {
    try {
      const answer = await options.dispatcher.request({
        origin: options.origin(),
        method: ctx.method as Dispatcher.HttpMethod,
        path: ctx.url,
        headers: authRequestHeaders(ctx),
        headersTimeout: 0,
        bodyTimeout: options.timeoutMs,
        signal: AbortSignal.timeout(options.timeoutMs),
      });
      return await readAnswer(answer, passed);
    } catch (cause) {
      return {
        outcome: 'error',
        reason: cause instanceof Error ? cause.message || cause.name : String(cause),
      };
    }
  };
}

function authRequestHeaders(ctx: Context): string[] {
  const told = Object.entries(pick(ctx.req.headers, sentHeaders)).flatMap(([name, value]) => [name, String(value)]);
  return told.concat(forwardedHeaders(ctx, ''));
}

async function readAnswer(answer: Dispatcher.ResponseData, passed: readonly string[]): Promise<AuthAnswer> {
  const { statusCode, headers, body } = answer;
  if (statusCode === 200 || statusCode >= 500) {
    await body.dump({ limit: refusalBytesMax });
    if (statusCode === 200) return { outcome: 'allow', headers: singleValues(headers) };
    return {
      outcome: 'error',
      reason: `the auth service answered ${statusCode}`,
    };
  }
  return {
    outcome: 'deny',
    status: statusCode,
    headers: pick(headers, passed),
    body: await readBounded(body),
  };
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > refusalBytesMax) throw new Error(`the auth service's answer is larger than ${refusalBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string | string[]> {
  const picked: Record<string, string | string[]> = {};
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

function singleValues(headers: IncomingHttpHeaders): Record<string, string> {
  const entries = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return Object.fromEntries(entries);
}
