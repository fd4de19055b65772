/** The auth service across HTTP: asked on the request's own path, heard on 200 alone (Envoy's ext_authz over HTTP). */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { Dispatcher } from 'undici';
import type { AuthAnswer } from '#auth';
import type { AuthService } from '#config';
import { type Cluster, forwardedHeaders, publicAddress, underDeadline } from '#proxy';
import type { AuthBody } from './auth-body.ts';
import { createAuthCache, mayBeKept } from './auth-cache.ts';
import { type AuthReply, askCluster, type QuestionOptions } from './auth-exchange.ts';
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
  const passed = [...refusalHeaders, ...allowedAuthorizationHeaders];
  // Of a body only its beginning may be known, and it is not worth a digest.
  const cache = cacheMs > 0 && includeBody === undefined ? createAuthCache({ ttlMs: cacheMs }) : undefined;

  async function askNow(ctx: Context, question: AuthQuestion, body: AuthBody | undefined): Promise<AuthAnswer> {
    try {
      const options = dispatchOptions(question, path, body);
      const reply = await underDeadline(ctx, timeoutMs, (signal) => askCluster(cluster, options, signal));
      const answer = answerOf(reply, allowedAuthorizationHeaders, passed);
      if (answer.outcome === 'allow' && mayBeKept(reply.headers)) cache?.remember(question, answer);
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
export function dispatchOptions(question: AuthQuestion, path: string, body: AuthBody | undefined) {
  const { method, headers } = question;
  const said = body === undefined ? headers : [...headers, 'x-envoy-auth-partial-body', String(!body.isWhole)];
  return {
    method: method as Dispatcher.HttpMethod,
    path: path + question.path,
    headers: [...said],
    body: body === undefined || body.bytes.length === 0 ? null : body.bytes,
  } satisfies QuestionOptions;
}

function answerOf(
  { status, headers, body }: AuthReply,
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
