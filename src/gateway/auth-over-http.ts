/** The auth service across HTTP: asked on the request's own path, heard on 200 alone (Envoy's ext_authz over HTTP). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { AuthAnswer } from '#auth';
import type { AuthService } from '#config';
import {
  type CallOptions,
  type Cluster,
  callUpstream,
  forwardedHeaders,
  publicAddress,
  type UpstreamRequest,
  type UpstreamResponse,
  wholeBody,
} from '#proxy';
import type { AuthBody } from './auth/body.ts';
import { createAuthCache, mayBeKept } from './auth-cache.ts';
import { type AuthQuestion, createPutQuestion } from './auth-question.ts';
import type { AskAuth } from './authenticate.ts';

export interface AuthOverHttpOptions {
  readonly record: AuthService;
  readonly cluster: Cluster;
  /** Put before every path that is asked about: `''`, or `/base`. */
  readonly path: string;
}

/** A refusal may carry these to the client, beside those that the record lists. */
const refusalHeaders = ['location', 'proxy-authenticate', 'retry-after', 'set-cookie', 'www-authenticate'];

/** These describe the refusal's body and go with it. */
const bodyHeaders = ['content-encoding', 'content-type'];

export function createAuthOverHttp({ record, cluster, path }: AuthOverHttpOptions): AskAuth {
  const { timeoutMs, cacheMs, includeBody, allowedAuthorizationHeaders } = record;
  const putQuestion = createPutQuestion(record);
  const callOptions: CallOptions = { timeoutMs, repeat: 'failover' };
  const passed = [...refusalHeaders, ...allowedAuthorizationHeaders];
  // Of a body only its beginning may be known, and it is not worth a digest.
  const cache = cacheMs > 0 && includeBody === undefined ? createAuthCache({ ttlMs: cacheMs }) : undefined;

  async function askNow(ctx: Context, question: AuthQuestion, body: AuthBody | undefined): Promise<AuthAnswer> {
    const deadlineMs = performance.now() + timeoutMs;
    try {
      const request = { ...upstreamRequest(question, path, body), client: ctx.res };
      const response = await callUpstream(cluster, request, callOptions);
      const answer = answerOf(response.head, await bodyOf(response, deadlineMs), allowedAuthorizationHeaders, passed);
      if (answer.outcome === 'allow' && mayBeKept(response.head.headers)) cache?.remember(question, answer);
      return answer;
    } catch (cause) {
      return { outcome: 'error', reason: cause instanceof Error ? cause.message || cause.name : String(cause) };
    }
  }

  return function authOverHttp(ctx, facts, body) {
    const address = publicAddress(ctx);
    const question = putQuestion(facts, forwardedHeaders(ctx, address, address.path));
    return cache?.recall(question) ?? askNow(ctx, question, body);
  };
}

/** The question as it goes over the wire; `path` is the base path of the service. Pure. */
export function upstreamRequest(question: AuthQuestion, path: string, body: AuthBody | undefined): UpstreamRequest {
  const { method, headers } = question;
  return {
    method,
    path: path + question.path,
    headers: body === undefined ? headers : [...headers, 'x-envoy-auth-partial-body', String(!body.isWhole)],
    body: body === undefined || body.bytes.length === 0 ? undefined : wholeBody(body.bytes),
  };
}

const bodyBytesMax = 64 * 1024;

/** The status is the verdict: a body that is too large, breaks off or comes too late does not change it. */
async function bodyOf({ body }: UpstreamResponse, deadlineMs: number): Promise<Buffer | undefined> {
  try {
    return await body.read({ bytesMax: bodyBytesMax, timeoutMs: Math.max(1, deadlineMs - performance.now()) });
  } catch {
    return undefined;
  }
}

function answerOf(
  { status, headers }: UpstreamResponse['head'],
  body: Buffer | undefined,
  allowed: readonly string[],
  passed: readonly string[],
): AuthAnswer {
  if (status === 200) return { outcome: 'allow', headers: joined(headers, allowed) };
  if (status >= 500) return { outcome: 'error', reason: `the auth service answered ${status}` };
  const denial = { outcome: 'deny', status, headers: pick(headers, passed) } as const;
  if (body === undefined || (body.length === 0 && status >= 400)) return denial;
  return { ...denial, headers: pick(headers, [...passed, ...bodyHeaders]), body };
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string | string[]> {
  const picked: Record<string, string | string[]> = {};
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) picked[name] = value;
  }
  return picked;
}

/** A header that came several times is one list (RFC 9110 section 5.3). */
function joined(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const entries = Object.entries(pick(headers, names));
  return Object.fromEntries(entries.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]));
}
