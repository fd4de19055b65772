/** The diagnostics as they change, for who keeps looking: `/gateway/v0/diag/events`, behind the auth service. */
import type { Context } from 'koa';
import { createRepresentations, isRead, type Problem, problem, requestContext } from '#http';
import { type Endpoint, root } from './diag-app.ts';
import { createEventStreams, type EventStreamsOptions, type FullFor } from './event-streams.ts';
import { readSelection } from './selection.ts';
import { type DiagnosticsParts, readDiagnostics } from './snapshot.ts';

export interface DiagnosticsEvents {
  readonly endpoint: Endpoint;
  /** Ends the streams at once: nobody who stops is to wait for those who look on. */
  readonly close: () => void;
}

const contentType = 'text/event-stream';

/** Each event is the JSON of the diagnostics, with the same query. Proxies are asked not to hold it back. */
export function createDiagnosticsEvents(
  parts: DiagnosticsParts,
  options: Omit<EventStreamsOptions, 'read' | 'generation'> = {},
): DiagnosticsEvents {
  const representations = createRepresentations([{ type: contentType, contentType, tag: 'events', format: String }]);
  const streams = createEventStreams({
    ...options,
    read: (selection) => JSON.stringify(readDiagnostics(parts, selection)),
    generation: () => parts.configuration.current().number,
  });
  const prefix = `${root}/diag/events`;
  return {
    endpoint: {
      name: 'diagnostics-events',
      prefix,
      rewrite: '',
      authenticated: true,
      isLongLived: true,
      async run(ctx) {
        if (!isRead(ctx, prefix)) return;
        representations.choose(ctx.req.headers.accept);
        const selection = readSelection(ctx.search);
        ctx.set({ 'Cache-Control': 'no-store, no-transform', 'X-Accel-Buffering': 'no' });
        ctx.vary('Accept');
        ctx.set('Content-Type', contentType);
        ctx.status = 200;
        if (ctx.method === 'HEAD') return;
        // Nothing around us is to gather it, and that a client leaves is how it ends.
        ctx.respond = false;
        const opened = streams.open(selection, ctx.res, clientOf(ctx));
        if (opened !== 'open') throw refusal(opened);
      },
    },
    close: streams.close,
  };
}

/** The user that the auth service has named, or else the address: no name can be taken for an address. */
function clientOf(ctx: Context): string {
  const { user, addresses } = requestContext(ctx);
  return user === undefined ? `address ${addresses.client(ctx.req)}` : `user ${user}`;
}

const reasons: Readonly<Record<FullFor, string>> = {
  everyone: 'As many look on as may, or the server is stopping.',
  client: 'As many streams are open for this user, or for this address where no user is known, as may be for one.',
};

function refusal(full: FullFor): Problem {
  const detail = `${reasons[full]} The diagnostics themselves can be read.`;
  return problem('not-ready', { detail, headers: { 'Retry-After': '60' } });
}
