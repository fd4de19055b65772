/** Protocol upgrades (RFC 9110 section 7.8): the request is served like any other until a stage accepts the upgrade. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { notReady, type Problem, problem, stopping } from '../problem.ts';
import { endWithProblem } from './last-response.ts';
import { announcesBody, type ClientSocket } from './node-fixes.ts';
import { nodeHttp } from './node-http.ts';

/** The upgrade that a request asks for. */
export interface Upgrade {
  /** The protocols that the client offers, in order of preference and in lower case: `websocket`. */
  readonly protocols: readonly string[];
  /**
   * Sends 101 with the headers that are set on the response, and returns the connection. Its first bytes are those that
   * the client sent early. The caller then owns the connection, and must handle its errors and end it. When it closes,
   * the response emits `close`.
   */
  readonly accept: (protocol: string) => Socket;
}

/** A listener for the `upgrade` event of a server. */
export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface Upgrades {
  /** True if the server should treat the request as an upgrade. Otherwise it is an ordinary request with its body. */
  readonly shouldUpgrade: (req: IncomingMessage) => boolean;
  /** Passes requests to `handler`. If no stage accepts the upgrade, the connection closes after the response. */
  readonly listener: (handler: RequestListener) => UpgradeListener;
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
  const open = new Set<Socket>();
  let closed = false;

  function serve(handler: RequestListener, req: IncomingMessage, socket: Socket): void {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    const res = new nodeHttp.ServerResponse(req);
    (req as Carrier)[upgradeKey] = openUpgrade(req, res, socket);
    handler(req, res);
  }

  function refusal(req: IncomingMessage): Problem | undefined {
    if (closed) return notReady(stopping);
    if (open.size >= max) return problem('overloaded');
    if (canUpgrade(req)) return undefined;
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
        serve(handler, req, socket);
      }
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
    accept(protocol) {
      res.removeListener('finish', finish);
      socket.removeListener('end', close).removeListener('drain', drain).removeListener('timeout', closeStalled);
      res.removeHeader('Content-Length');
      res.setHeader('Connection', 'Upgrade');
      res.setHeader('Upgrade', protocol);
      res.writeHead(101).end();
      res.detachSocket(socket);
      socket.once('close', () => res.emit('close'));
      return socket;
    },
  };
}

/** True while the response to an earlier, pipelined request is still in progress. */
function isResponding(socket: ClientSocket): boolean {
  return Boolean(socket._httpMessage);
}
