/** The access log: one line for each request, as fields of a line of JSON or in Apache's combined format. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Context, Middleware, Next } from 'koa';
import { type RequestContext, requestContext, traceOf } from '../context.ts';
import { pathOf } from '../target/paths.ts';
import { endedStatus, type Logger } from './log.ts';

export type AccessLogFormat = 'json' | 'combined';

/** What is known when the request has come: stages change the path and the headers, and a closed socket has no address. */
interface Begun {
  readonly ctx: Context;
  readonly context: RequestContext;
  readonly connection: Connection;
  readonly startedAtMs: number;
  readonly client: string;
  /** As the client sent it, without the query, which may have secrets in it. */
  readonly path: string;
  readonly referer: string | undefined;
  readonly userAgent: string | undefined;
}

/** Writes the line when the response has ended, or its client has gone. */
export function createAccessLog(logger: Logger, format: AccessLogFormat = 'json'): Middleware {
  const write = format === 'json' ? createJsonWriter(logger) : createCombinedWriter(logger);
  return function accessLog(ctx: Context, next: Next) {
    const { req, res, url } = ctx;
    const context = requestContext(ctx);
    const begun: Begun = {
      ctx,
      context,
      connection: connectionOf(req.socket),
      startedAtMs: performance.now(),
      client: context.addresses.client(req),
      path: context.basePath + pathOf(url),
      referer: req.headers.referer,
      userAgent: req.headers['user-agent'],
    };
    res.on('close', () => write(begun));
    return next();
  };
}

/** One literal for all lines, since JSON.stringify is slower for objects of many shapes. A line leaves out what is undefined. */
function createJsonWriter(logger: Logger) {
  const info = logger.infoPlain ?? logger.info.bind(logger);
  return function writeJson({ ctx, context, connection, startedAtMs, client, path }: Begun): void {
    const { req, res } = ctx;
    const { requestId, user, mapping, upstream, upstreamMs } = context;
    const { bytesIn, bytesOut } = takeBytes(connection, req.socket);
    const fields = {
      requestId,
      traceId: traceOf(ctx).traceId,
      client,
      user,
      mapping,
      method: req.method,
      path,
      protocol: protocolOf(req),
      tls: connection.tls,
      status: endedStatus(res),
      bytesIn,
      bytesOut,
      durationMs: roundToTenths(performance.now() - startedAtMs),
      upstream,
      upstreamMs: upstreamMs === undefined ? undefined : roundToTenths(upstreamMs),
    };
    info(fields, 'request');
  };
}

/** `%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"` of Apache's mod_log_config; URLs are without their queries. */
function createCombinedWriter(logger: Logger) {
  const formatTime = createTimeFormat();
  const writeLine = logger.writeLine ?? ((line: string) => logger.info({}, line));
  return function writeCombined(begun: Begun): void {
    const { ctx, context, connection, startedAtMs, client, path, referer, userAgent } = begun;
    const { req, res } = ctx;
    const { bytesOut } = takeBytes(connection, req.socket);
    const at = formatTime(Date.now() - (performance.now() - startedAtMs));
    const bodyBytes = Math.max(0, bytesOut - headLength(res));
    const line =
      `${client || '-'} - ${escapeWord(context.user)} [${at}] "${escapeQuoted(`${req.method} ${path} ${protocolOf(req)}`)}" ` +
      `${endedStatus(res)} ${bodyBytes || '-'} "${escapeQuoted(referer?.replace(/[?#].*/, ''))}" "${escapeQuoted(userAgent)}"`;
    writeLine(line);
  };
}

/** Apache's escapes: a client can neither close the quotes nor begin a line. */
function escapeQuoted(text = ''): string {
  return text === '' ? '-' : text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/gu, escapeCharacter);
}

/** A name that is not in quotes has no blanks either. */
function escapeWord(text: string | undefined): string {
  return escapeQuoted(text).replaceAll(' ', '\\x20');
}

/** Node reads headers as Latin-1, so a character up to U+00FF is the byte that was sent. */
function escapeCharacter(character: string): string {
  if (character === '"' || character === '\\') return `\\${character}`;
  const bytes = Buffer.from(character, character <= '\xff' ? 'latin1' : 'utf8');
  return bytes.toString('hex').replace(/../g, '\\x$&');
}

/** `22/Nov/2026:10:15:37 +0000`, formatted once a second. */
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

/** The length of the head of the response, in bytes; 0: none was sent. */
function headLength(res: ServerResponse & { readonly _header?: string | null }): number {
  return res._header?.length ?? 0;
}

/** How many bytes of a connection are in lines of the log already. */
interface Connection {
  /** `TLSv1.3`; undefined: plain TCP. */
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

/** What the connection has carried since the line before, heads included. Of pipelined requests the first line has what came with it. */
function takeBytes(connection: Connection, { bytesRead, bytesWritten }: Socket) {
  const taken = { bytesIn: bytesRead - connection.bytesRead, bytesOut: bytesWritten - connection.bytesWritten };
  connection.bytesRead = bytesRead;
  connection.bytesWritten = bytesWritten;
  return taken;
}

function protocolOf({ httpVersion }: IncomingMessage): string {
  return `HTTP/${httpVersion}`;
}

function roundToTenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
