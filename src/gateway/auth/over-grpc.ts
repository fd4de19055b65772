/** An auth service over gRPC, called with Envoy's ext_authz v3. */
import type { Context } from 'koa';
import {
  type CheckAnswer,
  type CheckAttributes,
  checkPath,
  type DeniedAnswer,
  decodeCheckAnswer,
  encodeCheck,
  type HeaderEdit,
  type OkAnswer,
  type PeerAddress,
} from '#auth/ext-authz';
import { type AuthService, framingFault } from '#config';
import { messageOf } from '#foundation';
import {
  announcesBody,
  canonicalCase,
  clientSubjectHeader,
  dashedName,
  grpcStatus,
  nodeHttp,
  requestContext,
} from '#http';
import {
  addForwardedHeaders,
  type Cluster,
  callUnary,
  GrpcFailure,
  isProvoked,
  publicAddress,
  type UnaryResponse,
  viaOf,
} from '#proxy';
import type { RequestAttributes } from '#routing';
import type { AuthBody } from './body.ts';
import { createAuthCache } from './cache.ts';
import {
  type Answer,
  type AuthClient,
  type CheckRequest,
  createCheckRequest,
  type RequestEdits,
} from './check-request.ts';
import { uncheckedSlug, withoutBody } from './own-service.ts';

export interface AuthOverGrpcOptions {
  readonly record: AuthService;
  /** Uses HTTP/2. */
  readonly cluster: Cluster;
  /** The base path of the service: `''`, or `/base`. */
  readonly path: string;
  /** The headers that clients must not send, in lower case. The service sets those that the record lists. */
  readonly identityHeaders: readonly string[];
}

const answerBytesMax = 64 * 1024;

export function createAuthOverGrpc(options: AuthOverGrpcOptions): AuthClient {
  const { record, cluster, path } = options;
  const { timeoutMs, cacheMs, includeBody } = record;
  const identity = new Set([...options.identityHeaders, ...record.allowedAuthorizationHeaders].map(dashedName));
  const isIdentity = (name: string) => identity.has(dashedName(name));
  const checkRequestOf = createCheckRequest(record, isIdentity);
  const decisionOf = createDecisionOf(record, isIdentity);
  const cache = cacheMs > 0 && includeBody === undefined ? createAuthCache({ ttlMs: cacheMs }) : undefined;

  function checkRequestFor(ctx: Context, attributes: RequestAttributes): CheckRequest {
    const address = publicAddress(ctx);
    const added: string[] = [];
    addForwardedHeaders(added, ctx, address, address.path);
    added.push('via', viaOf(ctx.req));
    return checkRequestOf(attributes, added);
  }

  async function call(ctx: Context, check: CheckRequest, attributes: CheckAttributes): Promise<Answer> {
    const askedAtMs = performance.now();
    let response: UnaryResponse;
    try {
      response = await callUnary(cluster, {
        path: path + checkPath,
        headers: ['x-request-id', attributes.id, ...withoutBody],
        message: encodeCheck(attributes),
        client: ctx.res,
        timeoutMs,
        repeat: 'failover',
        responseBytesMax: answerBytesMax,
      });
    } catch (cause) {
      return { outcome: 'error', reason: messageOf(cause), isProvoked: mayBeProvoked(cause) };
    }
    const decision = decide(response);
    if (decision.outcome === 'allow' && decision.clientHeaders?.['set-cookie'] === undefined)
      cache?.remember(check, decision, askedAtMs);
    return decision;
  }

  /** An answer that cannot be followed may depend on the request. */
  function decide({ head, message }: UnaryResponse): Answer {
    try {
      return decisionOf(decodeCheckAnswer(message), head.headers);
    } catch (cause) {
      return { outcome: 'error', reason: messageOf(cause), isProvoked: true };
    }
  }

  const clientFor = (context: CheckAttributes['contextExtensions']): AuthClient =>
    Object.freeze({
      ask(ctx: Context, attributes: RequestAttributes, body: AuthBody | undefined) {
        const check = checkRequestFor(ctx, attributes);
        // The decision may depend on what the mapping says.
        const known = context.length === 0 ? check : { ...check, headers: [...check.headers, ...context.flat()] };
        return cache?.recall(known) ?? call(ctx, known, attributesOf(ctx, check, { body, context }));
      },
      preview: checkRequestFor,
      withContext: clientFor,
    });
  return clientFor([]);
}

interface Described {
  readonly body: AuthBody | undefined;
  readonly context: CheckAttributes['contextExtensions'];
}

/** Describes a request as Envoy does. */
function attributesOf(ctx: Context, check: CheckRequest, { body, context }: Described): CheckAttributes {
  const { req } = ctx;
  const { addresses, requestId } = requestContext(ctx);
  const { method, path, headers } = check;
  const host = addresses.authority(req) ?? '';
  const scheme = addresses.scheme(req);
  const partial = body === undefined ? [] : ['x-envoy-auth-partial-body', String(!body.isWhole)];
  const { localAddress, localPort = 0 } = req.socket;
  return {
    source: sourceOf(ctx),
    destination:
      localAddress === undefined ? undefined : { address: localAddress, port: localPort, principal: undefined },
    id: requestId,
    method,
    headers: [':method', method, ':path', path, ':authority', host, ':scheme', scheme, ...headers, ...partial],
    path,
    host,
    scheme,
    size: announcesBody(req) ? Number(req.headers['content-length'] ?? -1) : 0,
    protocol: req.httpVersionMajor === 2 ? 'HTTP/2' : `HTTP/${req.httpVersion}`,
    body: body?.bytes,
    contextExtensions: context,
    serverName: undefined,
  };
}

/** The client, as trusted proxies report it. Only for the peer of the connection is the port known. */
function sourceOf(ctx: Context): PeerAddress {
  const { req } = ctx;
  const address = requestContext(ctx).addresses.client(req);
  const { remoteAddress = '', remotePort = 0 } = req.socket;
  const subject = req.headers[clientSubjectHeader];
  return {
    address,
    port: remoteAddress.endsWith(address) ? remotePort : 0,
    principal: typeof subject === 'string' ? subject : undefined,
  };
}

type Decide = (answer: CheckAnswer, metadata: Readonly<Record<string, unknown>>) => Answer;

/** The returned function throws an Error for an answer that cannot be followed. */
function createDecisionOf(record: AuthService, isIdentity: (name: string) => boolean): Decide {
  const listed = new Set(record.allowedAuthorizationHeaders);
  const isOthersIdentity = (name: string) => isIdentity(name) && !listed.has(name);

  function allowed({ headers, headersToRemove, responseHeaders, editsQuery }: OkAnswer): Answer {
    if (editsQuery) throw new Error('its response changes the query, which is not supported');
    const edits = headers.filter(({ name }) => isSettable(name) && !isOthersIdentity(name));
    const forClient = responseHeaders.filter(({ name }) => isSettable(name) && !name.startsWith('content-'));
    for (const edit of [...edits, ...forClient]) requireSendable(edit);
    const requestEdits: RequestEdits = {
      remove: new Set(headersToRemove.filter((name) => isSettable(name) && !listed.has(name))),
      set: edits.filter(({ name }) => !listed.has(name)),
    };
    return {
      outcome: 'allow',
      headers: joined(edits.filter(({ name }) => listed.has(name))),
      clientHeaders: valuesByName(forClient),
      edits: requestEdits,
    };
  }

  function denied({ status, headers, body }: DeniedAnswer, metadata: Parameters<Decide>[1]): Answer {
    if (!Number.isInteger(status) || status < 200 || status > 599)
      throw new Error(`its response has the status ${status}`);
    const sent = headers.filter(({ name }) => isSettable(name));
    for (const edit of sent) requireSendable(edit);
    const slug = uncheckedSlug(status, metadata);
    const found = Object.entries(valuesByName(sent)).map(([name, values]) => [canonicalCase(name), values] as const);
    const denial = { outcome: 'deny', status, headers: Object.fromEntries(found), ...(slug && { slug }) } as const;
    return body.length === 0 && status >= 400 ? denial : { ...denial, body };
  }

  return function decisionOf(answer, metadata) {
    if (answer.kind === 'error') return { outcome: 'error', reason: answer.reason };
    return answer.kind === 'ok' ? allowed(answer) : denied(answer, metadata);
  };
}

/** False for headers that frame a message, concern one connection or address the request. They are ignored. */
function isSettable(name: string): boolean {
  return framingFault(name) === undefined && !name.startsWith(':') && !name.startsWith('x-forwarded-');
}

/** A client could otherwise cause a header that is missing, or that is split in two. */
function requireSendable({ name, value }: HeaderEdit): void {
  nodeHttp.validateHeaderName(name);
  nodeHttp.validateHeaderValue(name, value);
}

function valuesByName(edits: readonly HeaderEdit[]): Readonly<Record<string, string[]>> {
  const values: Record<string, string[]> = {};
  for (const { name, value, action } of edits) {
    if (action === 'set-if-present') continue;
    const before = action === 'append' || name === 'set-cookie' ? (values[name] ?? []) : [];
    values[name] = [...before, value];
  }
  return values;
}

/** Joins repeated headers with commas (RFC 9110 section 5.3). */
function joined(edits: readonly HeaderEdit[]): Record<string, string> {
  return Object.fromEntries(Object.entries(valuesByName(edits)).map(([name, values]) => [name, values.join(', ')]));
}

/** What a client can cause although the service is healthy, for example with a request that is too large for it. */
const provoked: readonly (number | undefined)[] = [
  undefined,
  grpcStatus.INVALID_ARGUMENT,
  grpcStatus.OUT_OF_RANGE,
  grpcStatus.RESOURCE_EXHAUSTED,
];

function mayBeProvoked(cause: unknown): boolean {
  if (cause instanceof GrpcFailure) return provoked.includes(cause.code);
  // Such as an answer that is too long.
  return cause instanceof RangeError || isProvoked(cause);
}
