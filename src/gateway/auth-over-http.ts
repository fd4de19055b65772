/** The auth service across HTTP: asked on the request's own path, heard on 200 alone (Envoy's ext_authz over HTTP). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import type { AuthAnswer } from '#auth';
import type { AskAuth } from './authenticate.ts';
import { underDeadline } from './deadline.ts';
import { forwardedHeaders, publicAddress } from './upstream-headers.ts';

export interface AuthOverHttpOptions {
  /** Scheme, host and port, asked for at each request since a listener's port may be known late. */
  readonly origin: () => string;
  /** Put before the request's own path: `''`, or `/base`. */
  readonly path: string;
  readonly dispatcher: Dispatcher;
  readonly timeoutMs: number;
  /** Lower-case names that a refusal may carry to the client beside the usual ones. */
  readonly allowedHeaders: readonly string[];
}

/** What the auth service is told besides method, path and query; `accept`, since a refusal goes to the client as it is. */
const sentHeaders = ['accept', 'authorization', 'cookie', 'from', 'proxy-authorization', 'user-agent'];

const refusalHeaders = ['location', 'proxy-authenticate', 'retry-after', 'set-cookie', 'www-authenticate'];

/** These describe the refusal's body and go with it. */
const bodyHeaders = ['content-encoding', 'content-type'];

const refusalBytesMax = 64 * 1024;

export function createAuthOverHttp(options: AuthOverHttpOptions): AskAuth {
  const { dispatcher, timeoutMs } = options;
  const passed = [...refusalHeaders, ...options.allowedHeaders];
  return async function authOverHttp(ctx) {
    try {
      return await underDeadline(ctx, timeoutMs, async (signal) => {
        const answer = await dispatcher.request({
          origin: options.origin(),
          method: ctx.method as Dispatcher.HttpMethod,
          path: options.path + ctx.path + ctx.search,
          headers: authRequestHeaders(ctx),
          headersTimeout: 0,
          signal,
        });
        return readAnswer(answer, passed);
      });
    } catch (cause) {
      return { outcome: 'error', reason: cause instanceof Error ? cause.message || cause.name : String(cause) };
    }
  };
}

function authRequestHeaders(ctx: Context): string[] {
  const told = Object.entries(pick(ctx.req.headers, sentHeaders)).flatMap(([name, value]) => [name, String(value)]);
  const address = publicAddress(ctx);
  return told.concat(forwardedHeaders(ctx, address, address.path));
}

/** The status is the verdict, so a body that fails or never ends does not change it. */
async function readAnswer(answer: Dispatcher.ResponseData, passed: readonly string[]): Promise<AuthAnswer> {
  const { statusCode, headers, body } = answer;
  if (statusCode === 200 || statusCode >= 500) {
    await body.dump({ limit: refusalBytesMax });
    if (statusCode === 200) return { outcome: 'allow', headers: singleValues(headers) };
    return { outcome: 'error', reason: `the auth service answered ${statusCode}` };
  }
  const denial = { outcome: 'deny', status: statusCode, headers: pick(headers, passed) } as const;
  const bytes = await readBounded(body);
  if (bytes === undefined || (bytes.length === 0 && statusCode >= 400)) return denial;
  return { ...denial, headers: pick(headers, [...passed, ...bodyHeaders]), body: bytes };
}

/** Undefined when the body cannot be had, or is too large to be held. */
async function readBounded(body: AsyncIterable<Buffer>): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > refusalBytesMax) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
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
