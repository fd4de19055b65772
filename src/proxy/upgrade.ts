/** Protocol upgrades, such as WebSocket: sends the 101 to the client and connects its socket to that of the service. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import { problem, type Upgrade, upgradeOf } from '#http';
import type { PathRestoration } from '#routing';
import type { ResponseHead } from './attempt.ts';
import { clientIsGone } from './call.ts';
import { upstreamProblem } from './failures.ts';
import { firstValue } from './headers.ts';
import { copyResponseHeaders } from './response.ts';
import { createIdleTimer } from './time-limits.ts';

/** An upgrade that the client offers and the mapping allows. */
export interface Handshake {
  /** The chosen protocol, in lower case. */
  readonly protocol: string;
  readonly upgrade: Upgrade;
}

/** Chooses the first protocol that the client offers and `allowed` contains, in lower case. */
export function handshakeOf(req: IncomingMessage, allowed: readonly string[]): Handshake | undefined {
  if (allowed.length === 0) return undefined;
  const upgrade = upgradeOf(req);
  const protocol = upgrade?.protocols.find((one) => allowed.includes(one));
  return upgrade === undefined || protocol === undefined ? undefined : { upgrade, protocol };
}

/** Throws `unknown-protocol` if the client cannot do without the upgrade, so that the service gets no other request. */
export function rejectRequiredUpgrade(req: IncomingMessage): void {
  if (upgradeOf(req)?.isRequired === true) throw problem('unknown-protocol');
}

export interface SwitchOptions {
  readonly restoration: PathRestoration;
  /** The mapping's edits of the response headers, if it has any. */
  readonly editResponse: ((ctx: Context) => void) | undefined;
  /** How long the connection may be idle in both directions, in milliseconds. 0 means no limit. */
  readonly idleTimeoutMs: number;
}

/** Sends the 101 and joins the connections. Throws `upstream-failed` if the response cannot be sent. */
export function switchProtocols(
  ctx: Context,
  { protocol, upgrade }: Handshake,
  { rawHeaders }: ResponseHead,
  connection: Duplex,
  { restoration, editResponse, idleTimeoutMs }: SwitchOptions,
): void {
  try {
    requireProtocol(protocol, firstValue(rawHeaders, 'upgrade'));
    requireAccept(upgrade.webSocketAccept, firstValue(rawHeaders, 'sec-websocket-accept'));
    copyResponseHeaders(ctx.res, rawHeaders, restoration);
    editResponse?.(ctx);
  } catch (cause) {
    connection.destroy();
    throw upstreamProblem(cause);
  }
  if (clientIsGone(ctx)) {
    connection.destroy();
    return;
  }
  ctx.respond = false;
  joinConnections(upgrade.accept(protocol), connection, idleTimeoutMs);
}

/** Rejects a switch to any protocol but the requested one. */
function requireProtocol(expected: string, switched: string | undefined): void {
  if (switched?.trim().toLowerCase() === expected) return;
  throw new Error(`the service switched to ${switched ?? 'an unnamed protocol'} instead of ${expected}`);
}

/** Rejects the response of something that does not speak WebSocket (RFC 6455 section 4.1). */
function requireAccept(expected: string | undefined, received: string | undefined): void {
  if (expected !== undefined && received?.trim() !== expected)
    throw new Error('the service switched with another Sec-WebSocket-Accept than that of its key');
}

/** A client that has left looks like one that has ended only its half, and a service may never end its own. */
const halfOpenMs = 5000;

/**
 * Either side may end its half of the connection and still receive data for five seconds. Both connections are closed
 * when one is cut off, or after `idleTimeoutMs` without traffic in either direction.
 */
function joinConnections(one: Duplex, other: Duplex, idleTimeoutMs: number): void {
  const idle = createIdleTimer(idleTimeoutMs, destroyBoth);
  let halfOpen: NodeJS.Timeout | undefined;

  function destroyBoth(): void {
    one.destroy();
    other.destroy();
  }

  function pipe(from: Duplex, to: Duplex): void {
    // Otherwise undici's socket would end as soon as the other side does, and bytes in flight would be lost.
    from.allowHalfOpen = true;
    from.on('data', idle.touch).on('error', destroyBoth);
    from.once('end', () => {
      halfOpen ??= setTimeout(destroyBoth, halfOpenMs);
    });
    from.once('close', () => {
      if (!from.readableEnded || !from.writableFinished) destroyBoth();
      if (!to.closed) return;
      idle.stop();
      clearTimeout(halfOpen);
    });
    from.pipe(to);
  }

  pipe(one, other);
  pipe(other, one);
  idle.touch();
}
