/** Requests that would switch their connection to another protocol: each is served like any other, until a stage accepts it. */
import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ClientSocket, endWithProblem } from './client-errors.ts';
import { type Problem, problem } from './problem.ts';
import { canUpgrade, protocolsOf } from './upgrade-request.ts';

/** What a client asks for beside its request. */
export interface Upgrade {
  /** That it offers, best first, in lower case: `websocket`. */
  readonly protocols: readonly string[];
  /**
   * Answers 101 with the headers that the response has by now, and gives the connection, before whose next bytes stand
   * those that the client sent early. From here on it is the caller's, who must listen for its errors and end it; when it
   * closes, so does the response.
   */
  readonly accept: (protocol: string) => Socket;
}

/** For the `upgrade` event of a server. */
export type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

export interface Upgrades {
  /** True when a server may take the request off HTTP; otherwise it is an ordinary one, its body and all. */
  readonly takes: (req: IncomingMessage) => boolean;
  /** The listener that has requests answered by `handler`: when nobody accepts, with an ordinary response, the connection's last. */
  readonly through: (handler: RequestListener) => UpgradeListener;
  /** Lets the connections be for so long, then cuts them off. Who comes later reads `not-ready`. */
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

/** `isAllowed` knows the protocols that any route lets through, in lower case. */
export function createUpgrades(isAllowed: (protocol: string) => boolean): Upgrades {
  const open = new Set<Socket>();
  let closed = false;

  function serve(handler: RequestListener, req: IncomingMessage, socket: Socket): void {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    const res = new ServerResponse(req);
    (req as Carrier)[upgradeKey] = openUpgrade(req, res, socket);
    handler(req, res);
  }

  function refusal(req: IncomingMessage): Problem | undefined {
    if (closed) return problem('not-ready');
    if (canUpgrade(req)) return undefined;
    return problem('bad-request', { detail: 'A request with `Upgrade` needs `Host`, and must not have a body.' });
  }

  return Object.freeze({
    takes: (req: IncomingMessage) => canUpgrade(req) && !isAnswering(req.socket) && protocolsOf(req).some(isAllowed),
    through: (handler: RequestListener) => (req: IncomingMessage, duplex: Duplex, head: Buffer) => {
      // Node's own servers give nothing else, whatever the event's type says.
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

/** What Node's server does for a response of its own: the parser has let go of the connection. */
function openUpgrade(req: IncomingMessage, res: ServerResponse, socket: Socket): Upgrade {
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  const leave = () => socket.destroy();
  const drain = () => res.emit('drain');
  const finish = () => socket.resume().end(() => socket.destroy());
  // It reads on, as much as it holds, and so hears when the other side leaves.
  socket.once('end', leave).on('drain', drain);
  res.once('finish', finish);
  return {
    protocols: protocolsOf(req),
    accept(protocol) {
      res.removeListener('finish', finish);
      socket.removeListener('end', leave).removeListener('drain', drain);
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

/** A response that a client did not wait for is still on its way. */
function isAnswering(socket: ClientSocket): boolean {
  return Boolean(socket._httpMessage);
}
