/** Requests of a host's server on node:http2: puts our messages in place of Node's, which lack much of those of HTTP/1.1. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Context, Next } from 'koa';
import { grpcTypeOf } from '../../grpc/content-type.ts';
import { endStreamWithProblem } from '../last-response.ts';
import { beforeHead } from '../node-fixes.ts';
import type { UpgradeListener, Upgrades } from '../upgrades.ts';
import { serveConnect } from './connect.ts';
import { readHead } from './head.ts';
import { Http2Request, Http2Response, isHttp2, type StreamSocket } from './messages.ts';
import { streamPeerOf } from './sessions.ts';

/**
 * The first step in an app that may run on node:http2. Later steps of the host see our messages too. Node's own still
 * emit `finish` and `close` to those before, which also see the status.
 */
export function takeOverHttp2(ctx: Context, next: Next): Promise<void> | undefined {
  if (!isNodesOwn(ctx.req)) return next();
  // Nothing can be sent, and nothing would be emitted any more.
  if (ctx.req.stream.destroyed) return undefined;
  const taken = takeOver(ctx.req, ctx.res as unknown as Http2ServerResponse);
  if (taken === undefined) {
    ctx.respond = false;
    return undefined;
  }
  const { req, res } = taken;
  // The cookies that the host has read or set.
  Object.assign(ctx.cookies, { request: req, response: res });
  for (const holder of [ctx, ctx.request, ctx.response]) Object.assign(holder, { req, res });
  return next();
}

/**
 * For the `upgrade` event of a host's server, and for `connect` on node:http2, which has a response in place of the
 * socket, and needs the setting `enableConnectProtocol`.
 */
export function upgradesOfHost(upgrades: Upgrades, handler: RequestListener): UpgradeListener {
  const listener = upgrades.listener(handler);
  return (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!isNodesOwn(req)) return listener(req, socket, head);
    const taken = takeOver(req, socket as unknown as Http2ServerResponse);
    if (taken !== undefined) serveConnect(upgrades, handler, taken.res);
  };
}

/** True for a request of the compatibility API of node:http2. */
function isNodesOwn(req: IncomingMessage): req is IncomingMessage & Http2ServerRequest {
  return req.httpVersionMajor === 2 && !isHttp2(req);
}

/** Returns messages over the same stream, as the host has left its own. Rejects what our servers reject. */
function takeOver(
  givenRequest: Http2ServerRequest,
  givenResponse: Http2ServerResponse,
): { readonly req: Http2Request; readonly res: Http2Response } | undefined {
  const stream = Object.assign(givenRequest.stream, peerFieldsOf(givenRequest)) as unknown as StreamSocket;
  const { head, fault } = readHead(givenRequest.rawHeaders, Number.POSITIVE_INFINITY);
  if (fault !== undefined) {
    endStreamWithProblem(stream, fault, grpcTypeOf(givenRequest));
    return undefined;
  }
  Object.assign(stream, { bytesRead: head.bytes, bytesWritten: 0 });
  // It would send its own trailers, and a stream has them only once.
  stream.removeAllListeners('wantTrailers');
  const req = new Http2Request(stream, head);
  copyRequest(givenRequest, req);
  const res = new Http2Response(req);
  copyResponse(givenResponse, res);
  return { req, res };
}

function peerFieldsOf({ stream }: Http2ServerRequest): object {
  return stream.session === undefined ? {} : streamPeerOf(stream.session.socket);
}

function copyRequest(given: Http2ServerRequest, request: Http2Request): void {
  // The host may have changed them.
  request.url = given.url;
  if (request.connectProtocol === undefined) {
    request.method = given.method;
    copyHeaders(given, request);
  }
  // What middleware of the host has added, such as `rawBody`.
  for (const [name, value] of Object.entries(given))
    if (!name.startsWith('_') && !(name in request)) Object.assign(request, { [name]: value });
  if (given.readableDidRead) Object.defineProperty(request, 'readableDidRead', { value: true });
  if (given.stream.readableEnded) {
    request.complete = true;
    request.push(null);
  }
}

/** The `host` stays that of the head. */
function copyHeaders(given: Http2ServerRequest, { headers }: Http2Request): void {
  const received = new Set(given.rawHeaders.filter((_, index) => index % 2 === 0));
  for (const name of received) if (given.headers[name] === undefined) delete headers[name];
  for (const [name, value] of Object.entries(given.headers)) if (!name.startsWith(':')) headers[name] = value;
}

function copyResponse(given: Http2ServerResponse, response: Http2Response): void {
  response.statusCode = given.statusCode;
  response.sendDate = given.sendDate;
  for (const [name, value] of Object.entries(given.getHeaders()))
    if (value !== undefined) response.setHeader(name, value as number | string | readonly string[]);
  beforeHead(response, ({ statusCode }: ServerResponse) => {
    given.statusCode = statusCode === 101 ? 200 : statusCode;
  });
}
