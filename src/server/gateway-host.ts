/** Holds the gateway of the configuration in force; a request finishes on the gateway on which it began. */
import type { Context } from 'koa';
import type { Explain, ExplainRequest } from '#explain';
import type { Gateway, GatewaySnapshot } from '#gateway';
import { notReady, stopping } from '#http';

/** A gateway, and what has to be closed with it. */
export interface OpenGateway {
  readonly gateway: Gateway;
  readonly explain: Explain;
  readonly close: () => Promise<void>;
}

/** All but `replace` and `close` ask the gateway that new requests meet, and throw before there is one. */
export interface GatewayHost {
  readonly middleware: (ctx: Context) => Promise<void>;
  /** True for a preflight that a mapping of the gateway answers. */
  readonly answersPreflight: (ctx: Context) => boolean;
  readonly snapshot: () => GatewaySnapshot;
  readonly explain: Explain;
  /** The gateway that was in force closes when its last request has ended. */
  readonly replace: (next: OpenGateway) => void;
  /**
   * Resolves when the requests that have begun have ended, or after `deadlineMs`, and all gateways are closed. Later ones
   * read `not-ready`: a host may send requests until it closes its own server, and after it.
   */
  readonly close: (deadlineMs: number) => Promise<void>;
}

/**
 * Made empty, and given its first gateway afterwards: the gateway's own routes, such as the diagnostics, show the
 * gateway that they are part of.
 */
export function createGatewayHost(): GatewayHost {
  const retired = new Map<Holder, Promise<void>>();
  let inForce: Holder | undefined;
  let isClosed = false;

  function holder(): Holder {
    if (inForce === undefined) throw new Error('no gateway is open yet');
    return inForce;
  }

  function retire(last: Holder): void {
    const closed = closeWhenDrained(last).finally(() => retired.delete(last));
    retired.set(last, closed);
  }

  return Object.freeze({
    async middleware(ctx: Context) {
      if (isClosed) throw notReady(stopping);
      const met = holder();
      met.inFlight += 1;
      try {
        await met.open.gateway.middleware(ctx, noNext);
      } finally {
        met.inFlight -= 1;
        if (met.inFlight === 0) met.onDrained?.();
      }
    },
    answersPreflight: (ctx: Context) => holder().open.gateway.answersPreflight(ctx),
    snapshot: () => holder().open.gateway.snapshot(),
    explain: (request: ExplainRequest) => holder().open.explain(request),
    replace(open: OpenGateway) {
      const last = inForce;
      inForce = { open, inFlight: 0, onDrained: undefined };
      if (last !== undefined) retire(last);
    },
    async close(deadlineMs: number) {
      if (inForce !== undefined && !isClosed) retire(inForce);
      isClosed = true;
      const timer = setTimeout(() => {
        for (const { onDrained } of retired.keys()) onDrained?.();
      }, deadlineMs);
      await Promise.all(retired.values()).finally(() => clearTimeout(timer));
    },
  });
}

async function closeWhenDrained(holder: Holder): Promise<void> {
  if (holder.inFlight > 0)
    await new Promise<void>((resolve) => {
      holder.onDrained = resolve;
    });
  await holder.open.close();
}

interface Holder {
  readonly open: OpenGateway;
  inFlight: number;
  /** Set while it waits to be closed. */
  onDrained: (() => void) | undefined;
}

/** A gateway answers every request. */
async function noNext(): Promise<void> {}
