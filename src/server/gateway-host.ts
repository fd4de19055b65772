/** Holds the gateway of the configuration in force; a request finishes on the gateway on which it began. */
import type { Context } from 'koa';
import type { Explain, ExplainRequest } from '#explain';
import type { Gateway, GatewaySnapshot } from '#gateway';

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
  /** Resolves when no request is left on any of them. */
  readonly close: () => Promise<void>;
}

/**
 * Made empty, and given its first gateway afterwards: the gateway's own routes, such as the diagnostics, show the
 * gateway that they are part of.
 */
export function createGatewayHost(): GatewayHost {
  const closing = new Set<Promise<void>>();
  let inForce: Holder | undefined;

  function holder(): Holder {
    if (inForce === undefined) throw new Error('no gateway is open yet');
    return inForce;
  }

  function close(holder: Holder): void {
    if (holder.isClosed) return;
    holder.isClosed = true;
    const closed = holder.open.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  return Object.freeze({
    async middleware(ctx: Context) {
      const met = holder();
      met.inFlight += 1;
      try {
        await met.open.gateway.middleware(ctx, noNext);
      } finally {
        met.inFlight -= 1;
        if (met.isReplaced && met.inFlight === 0) close(met);
      }
    },
    answersPreflight: (ctx: Context) => holder().open.gateway.answersPreflight(ctx),
    snapshot: () => holder().open.gateway.snapshot(),
    explain: (request: ExplainRequest) => holder().open.explain(request),
    replace(open: OpenGateway) {
      const last = inForce;
      inForce = { open, inFlight: 0, isReplaced: false, isClosed: false };
      if (last === undefined) return;
      last.isReplaced = true;
      if (last.inFlight === 0) close(last);
    },
    async close() {
      if (inForce !== undefined) close(inForce);
      await Promise.all(closing);
    },
  });
}

interface Holder {
  readonly open: OpenGateway;
  inFlight: number;
  isReplaced: boolean;
  isClosed: boolean;
}

/** A gateway answers every request. */
async function noNext(): Promise<void> {}
