/** Requests that ask to switch the protocol (RFC 9110 section 7.8): served like any other until a stage accepts them. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { notReady, type Problem, problem, stopping } from '../problem.ts';
import { endWithProblem } from './client-errors.ts';
import { nodeHttp } from './node-http.ts';
import type { ClientSocket } from './refused-request.ts';
import { announcesBody } from './request-bodies.ts';

/** The part of a request that asks for another protocol. */
export interface Upgrade {
  /** That the client offers, best first, in lower case: `websocket`. */
  readonly protocols: readonly string[];
  /**
   * Answers 101 with the headers that are set on the response, and returns the connection, which first yields the bytes
   * that the client sent early. From then on the caller owns it, must listen for its errors and end it; when it closes,
   * so does the response.
   */
  readonly accept: (protocol: string) => Socket;
}

/** For the `upgrade` event of a server. */
export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface Upgrades {
  /** True when a server may take the request off HTTP; otherwise it is an ordinary one, with its body. */
  readonly shouldUpgrade: (req: IncomingMessage) => boolean;
  /** Passes requests to `handler`; one that no stage accepts gets an ordinary response, the connection's last. */
  readonly listener: (handler: RequestListener) => UpgradeListener;
  /** Gives open connections so much time, then cuts them off. Later requests read `not-ready`. */
  readonly close: (deadlineMs: number) => Promise<void>;
}

const upgradeKey = Symbol('upgrade');

interface Carrier {
  [upgradeKey]?: Upgrade;
}

/** Undefined for a request that cannot be upgraded, whatever its headers say. */
export function upgradeOf(req: IncomingMessage): Upgrade | undefined {
  return (req as Carrier)[upgradeKey];
}

/** `isAllowed`: whether any route lets the protocol through, which comes in lower case. `max`: connections at once. */
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
    if (open.size >= max) return problem('overloaded', { headers: { 'Retry-After': '1' } });
    if (canUpgrade(req)) return undefined;
    return problem('bad-request', { detail: 'A request with `Upgrade` needs `Host`, and must not have a body.' });
  }

  return Object.freeze({
    shouldUpgrade: (req: IncomingMessage) =>
      canUpgrade(req) && !isAnswering(req.socket) && protocolsOf(req).some(isAllowed),
    listener: (handler: RequestListener) => (req: IncomingMessage, duplex: Duplex, head: Buffer) => {
      // Node's own servers always pass a Socket, although the event's type is wider.
      const socket = duplex as Socket;
      socket.on('error', () => socket.destroy());
      const refused = refusal(req);
      if (isAnswering(socket)) socket.destroy();
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
 * HTTP/1.0 has no upgrade. For these requests Node does not check `Host`, and does not parse a body, so that one could
 * not be distinguished from the bytes of the new protocol.
 */
function canUpgrade(req: IncomingMessage): boolean {
  return req.httpVersion === '1.1' && req.headers.host !== undefined && !announcesBody(req);
}

function protocolsOf({ headers }: IncomingMessage): readonly string[] {
  const names = (headers.upgrade ?? '').toLowerCase().split(',');
  return names.map((name) => name.trim());
}

/** Does what Node's server does for an ordinary response, since its parser has let go of the connection. */
function openUpgrade(req: IncomingMessage, res: ServerResponse, socket: Socket): Upgrade {
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  const leave = () => socket.destroy();
  const drain = () => res.emit('drain');
  const finish = () => socket.resume().end(() => socket.destroy());
  // As `endIdleAnswers` does, whose listener has gone with the parser.
  const endIdle = () => void (socket.writableLength > 0 && socket.destroy());
  // The socket reads on, up to its buffer, and so notices when the client leaves.
  socket.once('end', leave).on('drain', drain).on('timeout', endIdle);
  res.once('finish', finish);
  return {
    protocols: protocolsOf(req),
    accept(protocol) {
      res.removeListener('finish', finish);
      socket.removeListener('end', leave).removeListener('drain', drain).removeListener('timeout', endIdle);
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

/** True while an earlier response is being sent, for which the client did not wait. */
function isAnswering(socket: ClientSocket): boolean {
  return Boolean(socket._httpMessage);
}
