/** `/gateway/v0/diag/`: the diagnostics as JSON, YAML or a page, with the style and script of the page. */

import { readFileSync } from 'node:fs';
import type { Context } from 'koa';
import type { InternalRoute } from '#gateway';
import { createRepresentations, isRead, type Markup, redirectTo, represent, requestContext } from '#http';
import { createDiagnosticsFormatters } from './page/page.ts';
import { parseFilter } from './snapshot/filter.ts';
import { type DiagnosticsParts, readDiagnostics } from './snapshot/snapshot.ts';

/** The first part of the paths of the gateway's own endpoints. */
export const root = '/gateway/v0';

/** `/gateway/v0/diag/`, behind the auth service, and below it the files of its page, which shows the `explainForm`. */
export function createDiagnostics(parts: DiagnosticsParts, explainForm: Markup): InternalRoute {
  const representations = createRepresentations(createDiagnosticsFormatters(explainForm));
  const assets = readAssets();
  const prefix = `${root}/diag`;
  return {
    name: 'diagnostics',
    prefix,
    rewrite: '',
    forAdmins: true,
    async run(ctx) {
      if (ctx.path === prefix) return redirectTo(ctx, `${requestContext(ctx).basePath}${prefix}/${ctx.search}`);
      const asset = assets.get(ctx.path.slice(prefix.length + 1));
      if (!isRead(ctx, asset === undefined ? `${prefix}/` : ctx.path)) return;
      if (asset !== undefined) return sendAsset(ctx, asset);
      const { contentType, headers, format } = representations.choose(ctx.req.headers.accept);
      const diagnostics = readDiagnostics(parts, parseFilter(ctx.search));
      ctx.vary('Accept');
      ctx.set({ ...headers, 'Cache-Control': 'no-store', 'Content-Type': contentType });
      ctx.body = format(diagnostics, 'frontdesk diagnostics');
    },
  };
}

/** The entity tag is a digest, so that a browser that has the file gets 304. */
function sendAsset(ctx: Context, { contentType, body }: Asset): void {
  represent(ctx, { type: contentType, contentType, tag: 'asset', format: () => body }, body, { title: '' });
}

interface Asset {
  readonly contentType: string;
  readonly body: string;
}

const contentTypes = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

const names = [
  ...['base.css', 'diagnostics.css', 'explain.css'],
  ...['diagnostics.js', 'connection.js', 'display.js', 'parts.js', 'figures.js', 'format.js', 'verdict.js'],
] as const;

/** Read once, at the start. They lie beside this file, both in the sources and in the build. */
export function readAssets(): ReadonlyMap<string, Asset> {
  return new Map(names.map((name) => [name, { contentType: contentTypes[extensionOf(name)], body: read(name) }]));
}

function extensionOf(name: (typeof names)[number]): keyof typeof contentTypes {
  return name.endsWith('.css') ? 'css' : 'js';
}

function read(name: string): string {
  return readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
}
