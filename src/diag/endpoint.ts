/** The endpoint `/gateway/v0/diag/`: serves the diagnostics as JSON, YAML or HTML, and the files of the page. */

import type { InternalRoute } from '#gateway';
import {
  acceptRead,
  createRepresentations,
  type Markup,
  readPageFiles,
  redirectTo,
  requestContext,
  sendTagged,
} from '#http';
import { createDiagnosticsFormatters } from './page/page.ts';
import { parseFilter } from './snapshot/filter.ts';
import { type DiagnosticsParts, readDiagnostics } from './snapshot/snapshot.ts';

/** The common prefix of the gateway's internal endpoints. */
export const root = '/gateway/v0';

/** Requires an administrator. The page contains the `explainForm`. */
export function createDiagnostics(parts: DiagnosticsParts, explainForm: Markup): InternalRoute {
  const representations = createRepresentations(createDiagnosticsFormatters(explainForm));
  const files = readPageFiles(new URL('./browser/', import.meta.url), fileNames);
  const prefix = `${root}/diag`;
  return {
    name: 'diagnostics',
    prefix,
    forAdmins: true,
    async run(ctx) {
      if (ctx.path === prefix) return redirectTo(ctx, `${requestContext(ctx).basePath}${prefix}/${ctx.search}`);
      const file = files.get(ctx.path.slice(prefix.length + 1));
      if (!acceptRead(ctx, file === undefined ? `${prefix}/` : ctx.path)) return;
      if (file !== undefined) return sendTagged(ctx, file);
      const { contentType, headers, format } = representations.choose(ctx.req.headers.accept);
      const diagnostics = readDiagnostics(parts, parseFilter(ctx.search));
      ctx.vary('Accept');
      ctx.set({ ...headers, 'Cache-Control': 'no-store', 'Content-Type': contentType });
      ctx.body = format(diagnostics, 'frontdesk diagnostics');
    },
  };
}

/** The static files of the page. */
export const fileNames = [
  ...['diagnostics.css', 'explain.css'],
  ...['diagnostics.js', 'connection.js', 'display.js', 'parts.js', 'figures.js', 'format.js', 'verdict.js'],
] as const;
