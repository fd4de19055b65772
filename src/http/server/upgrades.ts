/** Protocol upgrades (RFC 9110 section 7.8): the request is served like any other until a stage accepts the upgrade. */
import { createHash } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { notReady, type Problem, problem, stopping } from '../problem.ts';
import { hasOurKey, webSocketKeyHeader } from './http2/head.ts';
import { type Http2Request, type Http2Response, isHttp2 } from './http2/messages.ts';
import { openTunnel } from './http2/tunnel.ts';
import { endStreamWithProblem, endWithProblem } from './last-response.ts';
import { announcesBody, type ClientSocket } from './node-fixes.ts';
import { nodeHttp } from './node-http.ts';

/** The upgrade that a request asks for. */
export interface Upgrade {
  /** The protocols that the client offers, in order of preference and in lower case: `websocket`. */
  readonly protocols: readonly string[];
  /** The client waits for nothing else, so that an ordinary success would be wrong: an extended CONNECT of HTTP/2. */
  readonly isRequired: boolean;
  /** The `Sec-WebSocket-Accept` with which the service must respond. Undefined if the client checks it. */
  readonly webSocketAccept: string | undefined;
  /**
   * Sends 101 with the headers that are set on the response, or what HTTP/2 has in its place, and returns the connection
   * or the stream. Its first bytes are those that the client sent early. The caller then owns it, and must handle its
   * errors and end it. When it closes, the response emits `close`.
   */
  readonly accept: (protocol: string) => Duplex;
}

/** A listener for the `upgrade` event of a server. */
export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface Upgrades {
  /** True if the server should treat the request as an upgrade. Otherwise it is an ordinary request with its body. */
  readonly shouldUpgrade: (req: IncomingMessage) => boolean;
  /** Passes requests to `handler`. If no stage accepts the upgrade, the connection closes after the response. */
  readonly listener: (handler: RequestListener) => UpgradeListener;
  /** Passes an extended CONNECT (RFC 8441) to `handler`. If no stage accepts the upgrade, the stream closes. */
  readonly serveConnect: (handler: RequestListener, res: Http2Response) => void;
  /** Closes open connections after the deadline, and responds to later requests with `not-ready`. */
  readonly close: (deadlineMs: number) => Promise<void>;
}

const upgradeKey = Symbol('upgrade');

interface Carrier {
  [upgradeKey]?: Upgrade;
}

/** Undefined if the request cannot be upgraded, whatever its headers say. */
export function upgradeOf(req: IncomingMessage): Upgrade | undefined {
  return (req as Carrier)[upgradeKey];
}

/** `isAllowed` returns true if a route accepts the protocol (in lower case). `max` limits upgraded connections. */
export function createUpgrades(isAllowed: (protocol: string) => boolean, max = Number.POSITIVE_INFINITY): Upgrades {
  const open = new Set<Duplex>();
  let closed = false;

  function serve(handler: RequestListener, res: ServerResponse, socket: Duplex, upgrade: Upgrade): void {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    (res.req as Carrier)[upgradeKey] = upgrade;
    handler(res.req, res);
  }

  function refusal(req: IncomingMessage): Problem | undefined {
    if (req.method === 'CONNECT') return problem('unknown-method');
    if (closed) return notReady(stopping);
    if (open.size >= max) return problem('overloaded');
    if (isHttp2(req) || canUpgrade(req)) return undefined;
    return problem('bad-request', {
      detail: 'A request with `Upgrade` needs a `Host` header and must not have a body.',
    });
  }

  return Object.freeze({
    shouldUpgrade: (req: IncomingMessage) =>
      canUpgrade(req) && !isResponding(req.socket) && protocolsOf(req).some(isAllowed),
    listener: (handler: RequestListener) => (req: IncomingMessage, duplex: Duplex, head: Buffer) => {
      // Node's own servers always pass a Socket, although the event's type is wider.
      const socket = duplex as Socket;
      socket.on('error', () => socket.destroy());
      const refused = refusal(req);
      if (isResponding(socket)) socket.destroy();
      else if (refused !== undefined) endWithProblem(socket, refused);
      else {
        if (head.length > 0) socket.unshift(head);
        const res = new nodeHttp.ServerResponse(req);
        serve(handler, res, socket, openUpgrade(req, res, socket));
      }
    },
    serveConnect(handler: RequestListener, res: Http2Response) {
      const { req } = res;
      const refused = refusal(req);
      if (refused !== undefined) endStreamWithProblem(req.stream, refused);
      else serve(handler, res, req.stream, openConnect(req, res));
    },
    async close(deadlineMs: number) {
      closed = true;
      const deadline = setTimeout(() => {
        for (const socket of open) socket.destroy();
      }, deadlineMs);
      await Promise.all([...open].map((socket) => new Promise((resolve) => socket.once('close', resolve))));
      clearTimeout(deadline);
    },
  });
}

/**
 * HTTP/1.0 has no upgrades. For upgrade requests, Node neither checks `Host` nor parses a body, so a body could not be
 * distinguished from bytes of the new protocol.
 */
function canUpgrade(req: IncomingMessage): boolean {
  return req.httpVersion === '1.1' && req.headers.host !== undefined && !announcesBody(req);
}

function protocolsOf({ headers }: IncomingMessage): readonly string[] {
  const names = (headers.upgrade ?? '').toLowerCase().split(',');
  return names.map((name) => name.trim());
}

/** Does what Node's server does for an ordinary response, because Node has detached its parser from the connection. */
function openUpgrade(req: IncomingMessage, res: ServerResponse, socket: Socket): Upgrade {
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  const close = () => socket.destroy();
  const drain = () => res.emit('drain');
  const finish = () => socket.resume().end(() => socket.destroy());
  // Replaces `closeStalledResponses`, whose listener was removed together with the parser.
  const closeStalled = () => void (socket.writableLength > 0 && socket.destroy());
  // The socket keeps reading until its buffer is full, so it notices when the client disconnects.
  socket.once('end', close).on('drain', drain).on('timeout', closeStalled);
  res.once('finish', finish);
  return {
    protocols: protocolsOf(req),
    isRequired: false,
    webSocketAccept: undefined,
    accept(protocol) {
      res.removeListener('finish', finish);
      socket.removeListener('end', close).removeListener('drain', drain).removeListener('timeout', closeStalled);
      res.setHeader('Connection', 'Upgrade');
      res.setHeader('Upgrade', protocol);
      sendSwitch(res, socket);
      return socket;
    },
  };
}

function sendSwitch(res: ServerResponse, socket: Socket): void {
  res.removeHeader('Content-Length');
  res.writeHead(101).end();
  res.detachSocket(socket);
  socket.once('close', () => res.emit('close'));
}

/** The response names neither the protocol, of which there is only one, nor what has become of our key. */
function openConnect(req: Http2Request, res: Http2Response): Upgrade {
  const { stream, connectProtocol = '' } = req;
  const key = req.headers[webSocketKeyHeader];
  const isOurs = hasOurKey(req);
  return {
    protocols: [connectProtocol],
    isRequired: true,
    webSocketAccept: typeof key === 'string' ? acceptOf(key) : undefined,
    accept() {
      if (isOurs) res.removeHeader('Sec-WebSocket-Accept');
      sendSwitch(res, stream as unknown as Socket);
      return openTunnel(stream);
    },
  };
}

/** The digest of RFC 6455 section 4.2.2. */
function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/** True while the response to an earlier, pipelined request is still in progress. */
function isResponding(socket: ClientSocket): boolean {
  return Boolean(socket._httpMessage);
}
