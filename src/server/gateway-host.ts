/** The gateway of a process over time: each configuration has one of its own, and a request finishes on the one that it met. */
import type { Context } from 'koa';
import type { Configuration } from '#config';
import type { Explain, ExplainRequest } from '#explain';
import type { GatewaySnapshot } from '#gateway';
import type { Edge } from './open-gateway.ts';
import type { Generations } from './reload.ts';

export interface Edges {
  readonly middleware: (ctx: Context) => Promise<void>;
  /** True for a preflight that a mapping of the gateway answers, which new requests meet. */
  readonly answersPreflight: (ctx: Context) => boolean;
  /** Of the gateway that new requests meet. */
  readonly snapshot: () => GatewaySnapshot;
  /** By the gateway that new requests meet. */
  readonly explain: Explain;
  /** Resolves when no request is left on any of them. */
  readonly close: () => Promise<void>;
}

interface Holder {
  readonly edge: Edge;
  running: number;
  retired: boolean;
}

/** `open` makes the edge of a configuration, and throws when it cannot. */
export function createEdges(generations: Generations, open: (configuration: Configuration) => Edge): Edges {
  const closing = new Set<Promise<void>>();
  let current = holderOf(open(generations.current().configuration));

  function close({ edge }: Holder): void {
    const closed = edge.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  function retire(holder: Holder): void {
    holder.retired = true;
    if (holder.running === 0) close(holder);
  }

  generations.follow((configuration) => {
    const next = holderOf(open(configuration));
    return () => {
      retire(current);
      current = next;
    };
  });

  return Object.freeze({
    async middleware(ctx: Context) {
      const holder = current;
      holder.running += 1;
      try {
        await holder.edge.gateway.middleware(ctx, nothing);
      } finally {
        holder.running -= 1;
        if (holder.retired && holder.running === 0) close(holder);
      }
    },
    answersPreflight: (ctx: Context) => current.edge.gateway.answersPreflight(ctx),
    snapshot: () => current.edge.gateway.snapshot(),
    explain: (request: ExplainRequest) => current.edge.explain(request),
    async close() {
      if (!current.retired) {
        current.retired = true;
        close(current);
      }
      await Promise.all(closing);
    },
  });
}

function holderOf(edge: Edge): Holder {
  return { edge, running: 0, retired: false };
}

/** A gateway answers every request. */
async function nothing(): Promise<void> {}
