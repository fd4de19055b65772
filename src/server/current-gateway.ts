/** Holds the current gateway, and replaces it on a reload. Each request finishes on the gateway that received it. */
import type { Context } from 'koa';
import type { TokenVerifier } from '#auth';
import type { Explain, ExplainRequest } from '#explain';
import type { Gateway, GatewaySnapshot } from '#gateway';
import { notReady, stopping } from '#http';

/** A gateway, with a `close` that also closes the connections that were opened for it. */
export interface OpenGateway {
  readonly gateway: Gateway;
  readonly explain: Explain;
  /** What checks the tokens on the auth listener. Undefined when none are accepted. */
  readonly tokensOfListener: TokenVerifier | undefined;
  readonly close: () => Promise<void>;
}

/** All functions except `replace` and `close` use the current gateway, and throw if there is none yet. */
export interface CurrentGateway {
  readonly middleware: (ctx: Context) => Promise<void>;
  /** Whether the request is a CORS preflight for which a mapping has a rule. */
  readonly answersPreflight: (ctx: Context) => boolean;
  readonly snapshot: () => GatewaySnapshot;
  readonly explain: Explain;
  /** Makes `next` the current gateway. The previous one is closed when its last request has finished. */
  readonly replace: (next: OpenGateway) => void;
  /**
   * Waits at most `deadlineMs` for requests in flight, then closes all gateways. New requests get the problem
   * `not-ready`: a host's server may still send some.
   */
  readonly close: (deadlineMs: number) => Promise<void>;
}

/** Starts without a gateway, because the first one needs routes that use this object, such as the diagnostics. */
export function createCurrentGateway(): CurrentGateway {
  const retired = new Map<GatewayEntry, Promise<void>>();
  let latest: GatewayEntry | undefined;
  let isClosed = false;

  function current(): GatewayEntry {
    if (latest === undefined) throw new Error('no gateway is open yet');
    return latest;
  }

  function retire(entry: GatewayEntry): void {
    const closed = closeWhenDrained(entry).finally(() => retired.delete(entry));
    retired.set(entry, closed);
  }

  return Object.freeze({
    async middleware(ctx: Context) {
      if (isClosed) throw notReady(stopping);
      const entry = current();
      entry.inFlight += 1;
      try {
        await entry.opened.gateway.middleware(ctx, noNext);
      } finally {
        entry.inFlight -= 1;
        if (entry.inFlight === 0) entry.onDrained?.();
      }
    },
    answersPreflight: (ctx: Context) => current().opened.gateway.answersPreflight(ctx),
    snapshot: () => current().opened.gateway.snapshot(),
    explain: (request: ExplainRequest) => current().opened.explain(request),
    replace(opened: OpenGateway) {
      const previous = latest;
      latest = { opened, inFlight: 0, onDrained: undefined };
      if (previous !== undefined) retire(previous);
    },
    async close(deadlineMs: number) {
      if (latest !== undefined && !isClosed) retire(latest);
      isClosed = true;
      const timer = setTimeout(() => {
        for (const { onDrained } of retired.keys()) onDrained?.();
      }, deadlineMs);
      await Promise.all(retired.values()).finally(() => clearTimeout(timer));
    },
  });
}

async function closeWhenDrained(entry: GatewayEntry): Promise<void> {
  if (entry.inFlight > 0)
    await new Promise<void>((resolve) => {
      entry.onDrained = resolve;
    });
  await entry.opened.close();
}

interface GatewayEntry {
  readonly opened: OpenGateway;
  /** The number of unfinished requests. */
  inFlight: number;
  /** Set while the gateway waits for its last request before it is closed. */
  onDrained: (() => void) | undefined;
}

/** Never called, because a gateway responds to every request. */
async function noNext(): Promise<void> {}
