/** The access log: one line per request, as JSON or in Apache's combined format. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Context, Middleware, Next } from 'koa';
import { hexOfCharacter, type Logger } from '#foundation';
import { type RequestContext, requestContext, traceOf } from '../context.ts';
import { grpcStatusName } from '../grpc/status.ts';
import { encodeHeader } from '../header-text.ts';
import { Http2Response } from '../server/http2/messages.ts';
import { pathOf } from '../target.ts';
import { finalStatus } from './final-status.ts';
import { finalGrpcStatus } from './grpc-status.ts';

export type AccessLogFormat = 'json' | 'combined';

/** Data captured when the request arrives: stages rewrite the path and headers, and a closed socket has no address. */
interface StartedRequest {
  readonly ctx: Context;
  readonly context: RequestContext;
  readonly connection: Connection;
  readonly client: string;
  /** As the client sent it, but without the query, which may contain secrets. */
  readonly path: string;
  readonly referer: string | undefined;
  readonly userAgent: string | undefined;
}

/** Writes the line when the response has ended or the client has disconnected. */
export function createAccessLog(logger: Logger, format: AccessLogFormat = 'json'): Middleware {
  const write = format === 'json' ? createJsonWriter(logger) : createCombinedWriter(logger);
  return function accessLog(ctx: Context, next: Next) {
    const { req, res, url } = ctx;
    const context = requestContext(ctx);
    const started: StartedRequest = {
      ctx,
      context,
      connection: connectionOf(req.socket),
      client: context.addresses.client(req),
      path: context.basePath + pathOf(url),
      referer: req.headers.referer,
      userAgent: req.headers['user-agent'],
    };
    res.on('close', () => write(started));
    return next();
  };
}

/** Uses one literal, so that the objects of all lines have one shape. JSON omits undefined fields. */
function createJsonWriter(logger: Logger) {
  const info = logger.infoPlain ?? logger.info.bind(logger);
  return function writeJson({ ctx, context, connection, client, path }: StartedRequest): void {
    const { req, res } = ctx;
    const { requestId, user, apiKey, mapping, problem, upstream, upstreamMs, refusedUpgrade } = context;
    const status = finalStatus(res);
    const grpcStatus = finalGrpcStatus(ctx, status);
    const { bytesIn, bytesOut } = countNewBytes(connection, req.socket);
    const fields = {
      requestId,
      traceId: traceOf(ctx).traceId,
      client,
      user,
      apiKey,
      mapping,
      method: req.method,
      path,
      protocol: protocolOf(req),
      tls: connection.tls,
      status,
      grpcStatus: grpcStatus === undefined ? undefined : (grpcStatusName(grpcStatus) ?? String(grpcStatus)),
      problem: problem?.slug,
      bytesIn,
      bytesOut,
      durationMs: roundToTenths(performance.now() - context.arrivedAtMs),
      upstream,
      upstreamMs: upstreamMs === undefined ? undefined : roundToTenths(upstreamMs),
      refusedUpgrade,
    };
    info(fields, 'request');
  };
}

/** Apache's `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"` (mod_log_config), without the queries of URLs. */
function createCombinedWriter(logger: Logger) {
  const formatTime = createTimeFormat();
  const writeLine = logger.writeLine ?? ((line: string) => logger.info({}, line));
  return function writeCombined(started: StartedRequest): void {
    const { ctx, context, connection, client, path, referer, userAgent } = started;
    const { req, res } = ctx;
    const { bytesOut } = countNewBytes(connection, req.socket);
    const at = formatTime(Date.now() - (performance.now() - context.arrivedAtMs));
    const bodyBytes = Math.max(0, bytesOut - headLength(res));
    const line =
      `${client || '-'} - ${escapeWord(context.user)} [${at}] "${escapeQuoted(`${req.method} ${path} ${protocolOf(req)}`)}" ` +
      `${finalStatus(res)} ${bodyBytes || '-'} "${escapeQuoted(referer?.replace(/[?#].*/, ''))}" "${escapeQuoted(userAgent)}"`;
    writeLine(line);
  };
}

/** Escapes like Apache, so that a client can neither close the quotes nor start a new line. */
function escapeQuoted(text = ''): string {
  return text === '' ? '-' : text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/gu, escapeCharacter);
}

/** Escapes blanks as well, for a field without quotes. The text is not that of a header as Node shows it. */
function escapeWord(text = ''): string {
  return escapeQuoted(encodeHeader(text)).replaceAll(' ', '\\x20');
}

/** Node decodes headers as Latin-1, so each character up to U+00FF is one byte as sent. */
function escapeCharacter(character: string): string {
  if (character === '"' || character === '\\') return `\\${character}`;
  return hexOfCharacter(character).replace(/../g, '\\x$&');
}

/** Formats times as `22/Nov/2026:10:15:37 +0000`, at most once per second. */
function createTimeFormat(): (timeMs: number) => string {
  let [second, text] = [-1, ''];
  return function formatTime(timeMs) {
    const current = Math.floor(timeMs / 1000);
    if (current !== second) {
      const [, day, month, year, time] = new Date(timeMs).toUTCString().split(' ');
      text = `${day}/${month}/${year}:${time} +0000`;
      second = current;
    }
    return text;
  };
}

/** The length of the response head in bytes, or 0 if none was sent. */
function headLength(res: ServerResponse & { readonly _header?: string | null }): number {
  return res instanceof Http2Response ? res.headBytes : (res._header?.length ?? 0);
}

/** The bytes of a connection that earlier log lines have already counted. */
interface Connection {
  /** `TLSv1.3`, for example. Undefined for plain TCP. */
  readonly tls: string | undefined;
  bytesRead: number;
  bytesWritten: number;
}

const connectionKey = Symbol('connection of the access log');

interface Carrier extends Socket {
  [connectionKey]?: Connection;
}

function connectionOf(socket: Carrier): Connection {
  socket[connectionKey] ??= { tls: tlsVersionOf(socket), bytesRead: 0, bytesWritten: 0 };
  return socket[connectionKey];
}

function tlsVersionOf(socket: Socket & { readonly getProtocol?: TLSSocket['getProtocol'] }): string | undefined {
  return socket.getProtocol?.() ?? undefined;
}

/**
 * Counts the bytes on the connection since its last log line, including heads. For pipelined requests that arrive in
 * one packet, the first line gets the bytes of all of them.
 */
function countNewBytes(connection: Connection, { bytesRead, bytesWritten }: Socket) {
  const counted = { bytesIn: bytesRead - connection.bytesRead, bytesOut: bytesWritten - connection.bytesWritten };
  connection.bytesRead = bytesRead;
  connection.bytesWritten = bytesWritten;
  return counted;
}

function protocolOf({ httpVersion }: IncomingMessage): string {
  return `HTTP/${httpVersion}`;
}

function roundToTenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
