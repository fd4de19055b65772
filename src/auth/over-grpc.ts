/** The auth service over gRPC: a call of Envoy's ext_authz gets the decision about the request that it describes. */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Context, Middleware, Next } from 'koa';
import {
  type CheckAttributes,
  checkBytesMax,
  checkPath,
  type DeniedAnswer,
  decodeCheck,
  encodeCheckAnswer,
  type HeaderEdit,
  type OkAnswer,
} from '#auth/ext-authz';
import {
  announcesBody,
  connectionHeaders,
  dashedName,
  formatGrpcFrame,
  grpcKindOf,
  grpcStatus,
  grpcStatusOfRefusal,
  Problem,
  parseGrpcFrame,
  pathOf,
  readBody,
  requestContext,
} from '#http';

/**
 * Creates the first middleware of an app that responds to HTTP checks. For a call, the middleware after it sees the
 * request that the call describes, and its response becomes the answer: 200 and the headers of `identityHeaders` (in lower
 * case), or any other response for the client.
 */
export function createCheckOverGrpc(identityHeaders: () => readonly string[]): Middleware {
  const readMessage = createMessageReader();
  return async function checkOverGrpc(ctx, next) {
    const message = isCheckCall(ctx.req) ? await readMessage(ctx.req) : 'none';
    if (message === 'none') return next();
    if (typeof message === 'number') return sendStatus(ctx, message);
    const described = describedRequest(message, ctx.req);
    const given = { ...ctx.res.getHeaders() };
    await asRequest(ctx, described, next);
    const response = takeResponse(ctx, given);
    if (hasFailed(ctx, response)) return sendStatus(ctx, grpcStatusOfRefusal(response.status));
    const names = identityHeaders();
    const answer = response.status === 200 ? allowed(response, names, described.headers) : denied(response);
    sendAnswer(ctx, encodeCheckAnswer(answer, answer.kind === 'ok' ? 0 : grpcStatusOfRefusal(answer.status)));
  };
}

/** Headers of an HTTP check, which describes its request in its own head, and may have the path of a call therefore. */
const headersOfHttpChecks = ['x-envoy-auth-partial-body', 'x-forwarded-method', 'x-forwarded-uri', 'x-original-uri'];

/**
 * True only for what no proxy sends as an HTTP check. To such a proxy, the 200 of every gRPC response would mean that the
 * request is allowed, and the client chooses its path, its method and its content type.
 */
function isCheckCall(req: IncomingMessage): boolean {
  const { headers, httpVersionMajor, url = '/' } = req;
  return (
    pathOf(url) === checkPath &&
    httpVersionMajor === 2 &&
    grpcKindOf(req) === 'grpc' &&
    headers['te'] === 'trailers' &&
    announcesBody(req) &&
    headersOfHttpChecks.every((name) => headers[name] === undefined)
  );
}

type DescribedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

/** Runs the rest of the app as if another request had arrived on the connection. */
async function asRequest({ req }: Context, other: DescribedRequest, next: Next): Promise<void> {
  const { method, url, headers } = req;
  Object.assign(req, other);
  try {
    await next();
  } finally {
    Object.assign(req, { method, url, headers });
  }
}

/** Each may have a message of the largest size. */
const arrivingMax = 256;

/** Returns what reads the message of a call, or the gRPC status of one that is not valid. An HTTP check has none. */
function createMessageReader() {
  const arriving = new Set<IncomingMessage>();
  return async function readMessage(req: IncomingMessage): Promise<CheckAttributes | number | 'none'> {
    arriving.add(req);
    const [oldest] = arriving;
    // An honest message arrives quickly.
    if (arriving.size > arrivingMax) oldest?.destroy();
    try {
      const body = await readBody(req, checkBytesMax);
      if (body.length === 0) return 'none';
      const message = parseGrpcFrame(body);
      return message === undefined ? grpcStatus.UNIMPLEMENTED : decodeCheck(message);
    } catch (error) {
      return error instanceof Problem ? grpcStatusOfRefusal(error.status) : grpcStatus.INVALID_ARGUMENT;
    } finally {
      arriving.delete(req);
    }
  };
}

/** Headers of the described request that concern its connection or its body, which is not here. */
const notDescribed: ReadonlySet<string> = new Set([
  ...connectionHeaders,
  'content-length',
  'content-type',
  'expect',
  'prefer',
]);

/** `Prefer` is that of the call, whose client is the one that knows what to do with the response. */
function describedRequest(check: CheckAttributes, call: IncomingMessage): DescribedRequest {
  const { method, path, host, source } = check;
  const headers: IncomingHttpHeaders = Object.create(null);
  for (let index = 0; index + 1 < check.headers.length; index += 2) {
    const [name = '', value = ''] = check.headers.slice(index, index + 2);
    if (!name.startsWith(':') && !notDescribed.has(name)) addHeader(headers, name, value);
  }
  if (host !== '') headers.host = host;
  if (call.headers['prefer'] !== undefined) headers['prefer'] = call.headers['prefer'];
  // As if each proxy had sent the address of its client. Whether to believe the caller depends on TRUSTED_PROXIES.
  if (source !== undefined) addHeader(headers, 'x-forwarded-for', source.address);
  return { method, url: path, headers };
}

/** Joins values as Node joins repeated headers. */
function addHeader(headers: IncomingHttpHeaders, name: string, value: string): void {
  const before = headers[name];
  headers[name] = before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`;
}

/** The response of the app to the described request. Headers have their names in lower case. */
interface AppResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, values: readonly string[]])[];
  readonly body: Uint8Array;
}

/** Headers that concern the call. The others are for the client. */
const ofCall: ReadonlySet<string> = new Set(['connection', 'content-length', 'preference-applied']);

/** Takes the response off the context. `given` are the headers that it had before. */
function takeResponse(ctx: Context, given: OutgoingHttpHeaders): AppResponse {
  const { res, status } = ctx;
  const body = Buffer.from((ctx.body ?? '') as string | Buffer);
  const added = Object.entries(res.getHeaders()).filter(([name, value]) => value !== given[name] && !ofCall.has(name));
  ctx.body = null;
  for (const [name] of added) {
    const before = given[name];
    if (before === undefined) res.removeHeader(name);
    else res.setHeader(name, before);
  }
  return { status, headers: added.map(([name, value]) => [name, [value ?? ''].flat().map(String)]), body };
}

/** False for a refusal of a login that was not checked: as a response for the client, it lets no caller pass a request. */
function hasFailed(ctx: Context, { status }: AppResponse): boolean {
  const { problem } = requestContext(ctx);
  return status >= 500 && problem !== undefined && problem.slug !== 'auth-overloaded';
}

/** Removes every spelling of an identity header that the client may have sent, and that the service has not set. */
function allowed({ headers }: AppResponse, names: readonly string[], described: IncomingHttpHeaders): OkAnswer {
  const edits = editsOf(headers.filter(([name]) => names.includes(name)));
  const aliases = new Set(names.map(dashedName));
  const found = Object.keys(described).filter((name) => aliases.has(dashedName(name)));
  const headersToRemove = [...new Set([...names, ...found])].filter(
    (name) => !edits.some((edit) => edit.name === name),
  );
  return { kind: 'ok', headers: edits, headersToRemove, responseHeaders: [], editsQuery: false };
}

function denied({ status, headers, body }: AppResponse): DeniedAnswer {
  return { kind: 'denied', status, headers: editsOf(headers), body };
}

function editsOf(headers: AppResponse['headers']): readonly HeaderEdit[] {
  return headers.flatMap(([name, values]) =>
    values.map((value, index): HeaderEdit => ({ name, value, action: index === 0 ? 'set' : 'append' })),
  );
}

function sendAnswer(ctx: Context, answer: Buffer): void {
  send(ctx, formatGrpcFrame(answer), grpcStatus.OK);
  ctx.res.addTrailers({ 'grpc-status': String(grpcStatus.OK) });
}

/** Callers then treat the service as unavailable. */
function sendStatus(ctx: Context, code: number): void {
  send(ctx, '', code);
  ctx.set({ 'grpc-status': String(code), 'grpc-message': 'the auth service could not decide' });
}

function send(ctx: Context, body: Buffer | '', code: number): void {
  ctx.status = 200;
  ctx.set('Content-Type', 'application/grpc');
  ctx.body = body;
  // Trailers need a body without a length, and without trailers the headers are then the last frame.
  ctx.remove('Content-Length');
  requestContext(ctx).grpcStatus = code;
}
