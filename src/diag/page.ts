/** The endpoint `/gateway/v0/diag/`: the diagnostics as JSON, as YAML, or as a page whose script shows the JSON. */
import type { Context } from 'koa';
import type { InternalRoute } from '#gateway';
import {
  acceptRead,
  createRepresentations,
  homeOf,
  html,
  htmlDocument,
  jsonFormatter,
  type Markup,
  pageHeaders,
  problem,
  type Representations,
  readPageFiles,
  redirectTo,
  requestContext,
  sendStoredFile,
  withHtmlPage,
} from '#http';
import { parseFilter, type ReadDiagnostics, type RowFilter } from './snapshot.ts';

const prefix = '/gateway/v0/diag';

/** Requires an administrator. The page contains the `explainForm`. */
export function createDiagnostics(readDiagnostics: ReadDiagnostics, explainForm: Markup): InternalRoute {
  const formatPage = (value: unknown, title: string) => page(value as PageParts, title, explainForm);
  const documents = new Map([
    ['', createRepresentations(withHtmlPage(formatPage, pageHeaders({ ownFiles: true })))],
    ['diagnostics.json', createRepresentations([jsonFormatter])],
  ]);
  const files = readPageFiles(new URL('./browser/', import.meta.url), fileNames);

  async function sendDiagnostics(ctx: Context, representations: Representations): Promise<void> {
    const filter = parseFilter(ctx.search);
    const { type, contentType, headers, format } = representations.choose(ctx.req.headers.accept);
    ctx.vary('Accept');
    ctx.set({ ...headers, 'Cache-Control': 'no-store', 'Content-Type': contentType });
    ctx.body = format(
      type === 'text/html' ? { ...filter, home: homeOf(ctx) } : await readDiagnostics(filter),
      'frontdesk diagnostics',
    );
  }

  return {
    name: 'diagnostics',
    prefix,
    forAdmins: true,
    async run(ctx) {
      if (ctx.path === prefix) return redirectTo(ctx, `${requestContext(ctx).basePath}${prefix}/${ctx.search}`);
      const name = ctx.path.slice(prefix.length + 1);
      const file = files.get(name);
      const representations = documents.get(name);
      if (file === undefined && representations === undefined) throw problem('not-found');
      if (!acceptRead(ctx, ctx.path)) return;
      if (file !== undefined) sendStoredFile(ctx, file);
      if (representations !== undefined) await sendDiagnostics(ctx, representations);
    },
  };
}

/** The static files of the page. */
export const fileNames = [
  'diagnostics.css',
  'explain.css',
  'cells.js',
  'connection.js',
  'diagnostics.js',
  'elements.js',
  'figures.js',
  'format.js',
  'health.js',
  'parts.js',
  'routes.js',
  'tables.js',
  'update.js',
  'verdict.js',
] as const;

interface PageParts extends RowFilter {
  readonly home: string | undefined;
}

/** The script shows the hidden elements, and fills those that have `data-part`. */
function page({ filter, home }: PageParts, title: string, explainForm: Markup): string {
  return htmlDocument({
    title,
    stylesheets: ['diagnostics.css'],
    script: 'diagnostics.js',
    header: headerWith(home),
    main: html`<noscript><p class="verdict" data-state="warning">This page needs JavaScript, but its data is also available <a href="diagnostics.json">as JSON</a>.</p></noscript>
<section aria-labelledby="health">
<h2 id="health" class="visually-hidden">Health</h2>
<p id="verdict" class="verdict" role="status" hidden></p>
<div data-part="errors"></div>
<div data-part="summary"></div>
</section>
<section aria-labelledby="explain">
<h2 id="explain">Explain a request</h2>
<p class="hint">Shows how the gateway would handle a request, without sending it.</p>
${explainForm}
</section>
<div id="sections" hidden>
<section aria-labelledby="routes">
<h2 id="routes">Routes</h2>
<form id="filter-form" class="filter" method="get" role="search">
<label for="filter">Filter routes, services and clusters</label>
<input id="filter" name="filter" type="search" value="${filter}" autocomplete="off" spellcheck="false">
<button>Filter</button>
${filter !== '' && html`<a href="./">Show all</a>`}
<p id="filter-count" role="status" data-part="count"></p>
</form>
<div data-part="routes"></div>
</section>
${[
  section('targets', 'Services'),
  section('limits', 'Limits'),
  section('unmatched', 'Requests without a route'),
  section('failures', 'Failed requests'),
]}</div>`,
  });
}

function headerWith(home: string | undefined): Markup {
  return html`${home !== undefined && html`<nav aria-label="Other pages"><a href="${home}">Home: routes and API docs</a></nav>\n`}<nav aria-label="On this page">
<a href="#explain">Explain</a><a href="#routes">Routes</a><a href="#targets">Services</a><a href="#limits">Limits</a><a href="#unmatched">No route</a><a href="#failures">Failures</a></nav>
<div class="connection"><p id="connection" role="status">Not live</p>
<p id="snapshot" class="hint"></p>
<button id="pause" type="button" hidden>Pause</button></div>`;
}

function section(id: string, heading: string): Markup {
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${heading}</h2>
<div data-part="${id}"></div>
</section>
`;
}
