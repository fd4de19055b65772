/** The gateway's own endpoints: diagnostics for people and machines, and two probes for whatever watches the process. */
import type { Context } from 'koa';
import { createRepresentations, isRead, type Markup, redirectTo, represent, requestContext } from '#http';
import { type Asset, readAssets } from './assets.ts';
import { createDiagnosticsFormatters } from './page.ts';
import { readSelection } from './selection.ts';
import { type DiagnosticsParts, readDiagnostics } from './snapshot.ts';

/** An endpoint under its whole path, for the gateway's table. */
export interface Endpoint {
  readonly name: string;
  readonly prefix: string;
  /** Endpoints see the path as it is. */
  readonly rewrite: '';
  readonly authenticated: boolean;
  /** Its answers last for as long as somebody looks on. */
  readonly isLongLived?: boolean;
  readonly run: (ctx: Context) => Promise<void>;
}

export const root = '/gateway/v0';

/** `/gateway/v0/diag/`, behind the auth service, with what its page asks for beside it. `explainForm` is on the page. */
export function createDiagnostics(parts: DiagnosticsParts, explainForm: Markup): Endpoint {
  const representations = createRepresentations(createDiagnosticsFormatters(explainForm));
  const assets = readAssets();
  const prefix = `${root}/diag`;
  return {
    name: 'diagnostics',
    prefix,
    rewrite: '',
    authenticated: true,
    async run(ctx) {
      if (ctx.path === prefix) return redirectTo(ctx, `${requestContext(ctx).basePath}${prefix}/${ctx.search}`);
      const asset = assets.get(ctx.path.slice(prefix.length + 1));
      if (!isRead(ctx, asset === undefined ? `${prefix}/` : ctx.path)) return;
      if (asset !== undefined) return sendAsset(ctx, asset);
      const { contentType, headers, format } = representations.choose(ctx.req.headers.accept);
      const diagnostics = readDiagnostics(parts, readSelection(ctx.search));
      ctx.vary('Accept');
      ctx.set({ ...headers, 'Cache-Control': 'no-store', 'Content-Type': contentType });
      ctx.body = format(diagnostics, 'frontdesk diagnostics');
    },
  };
}

/** The tag is a digest, so that a browser asks and is told that it has it already. */
function sendAsset(ctx: Context, { contentType, body }: Asset): void {
  represent(ctx, { type: contentType, contentType, tag: 'asset', format: () => body }, body, { title: '' });
}
