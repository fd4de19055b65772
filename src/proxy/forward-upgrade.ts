/** A client and a service that switch protocols: the request goes as any other does, and after 101 all bytes go as they come. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import { type Upgrade, upgradeOf } from '#http';
import type { PathRestoration } from '#routing';
import { copyAnswerHeaders } from './answer-headers.ts';
import type { ResponseHead } from './attempt.ts';
import { clientIsGone } from './call.ts';
import { upstreamProblem } from './failures.ts';
import { firstValue } from './raw-headers.ts';
import { joinConnections } from './tunnel.ts';

/** What the client offers and the mapping lets through. */
export interface Handshake {
  /** In lower case. */
  readonly protocol: string;
  readonly upgrade: Upgrade;
}

/** `allowed`: in lower case. Of several protocols that a client offers, the service is asked for the first of these. */
export function createHandshakes(allowed: readonly string[]): (req: IncomingMessage) => Handshake | undefined {
  if (allowed.length === 0) return () => undefined;
  return function handshakeOf(req) {
    const upgrade = upgradeOf(req);
    const protocol = upgrade?.protocols.find((one) => allowed.includes(one));
    return upgrade === undefined || protocol === undefined ? undefined : { upgrade, protocol };
  };
}

export interface SwitchOptions {
  readonly restoration: PathRestoration;
  /** What the mapping says of the response's headers. */
  readonly edit: (ctx: Context) => void;
  /** How long the connection may rest in both directions, in milliseconds; 0: without end. */
  readonly idleTimeoutMs: number;
}

/**
 * Passes on the 101, and from then on the two have the connection to themselves. Throws `upstream-failed` for an answer
 * that cannot be passed on.
 */
export function switchOver(
  ctx: Context,
  { protocol, upgrade }: Handshake,
  { rawHeaders }: ResponseHead,
  connection: Duplex,
  { restoration, edit, idleTimeoutMs }: SwitchOptions,
): void {
  try {
    requireProtocol(protocol, firstValue(rawHeaders, 'upgrade'));
    copyAnswerHeaders(ctx.res, rawHeaders, restoration);
    edit(ctx);
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

/** Of what it did not ask for the client would not understand a word. */
function requireProtocol(asked: string, switched: string | undefined): void {
  if (switched?.trim().toLowerCase() === asked) return;
  throw new Error(`the service switched to ${switched}, not to ${asked}`);
}
