/** The routes that serve the OpenAPI document at /openapi.json, and the documentation page with its files at /docs/. */
import type { Context, Next } from 'koa';
import {
  createRepresentations,
  createShowProblem,
  escapeHtml,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  lifecycleOf,
  type PagesPath,
  type ProblemPages,
  type ProblemTable,
  parseLifecycle,
  problemPagesOf,
  problems,
  publicBase,
  type Representations,
  readPageFile,
  represent,
  requestContext,
  sendStoredFile,
  type TaggedBody,
  yamlFormatter,
} from '#http';
import type { Route } from '../operation.ts';
import type { DocumentOptions } from './document.ts';
import { pageFrame } from './page/frame.ts';
import type { PageFrame } from './page/page.ts';

/** The path of the list of problems. The page of a problem is below it, such as `/docs/problems/not-found`. */
export const problemPages = '/docs/problems/';

interface DocumentedApp extends Pick<DocumentOptions, 'info' | 'routes' | 'kinds'> {
  readonly problemPagesPath: PagesPath;
  /** Whether the problem pages are among these routes. */
  readonly hasProblemPages: boolean;
}

/** Returns the routes that document the given ones. The documents are created when first requested. */
export function documentRoutes(app: DocumentedApp): readonly Route[] {
  /** By whether the version is deprecated, which a reload of the gateway may change. */
  const documents = new Map<boolean, Promise<Documents>>();
  function documentsFor(isDeprecated: boolean, representations: Representations): Promise<Documents> {
    const known = documents.get(isDeprecated);
    if (known !== undefined) return known;
    const created = createDocuments({ ...app, representations, isDeprecated });
    documents.set(isDeprecated, created);
    // Lets the next request try again.
    created.catch(() => documents.delete(isDeprecated));
    return created;
  }
  const route = (path: string, kind: keyof Documents): Route => ({
    method: 'GET',
    path,
    createHandler: ({ representations }) =>
      async function handleDocument(ctx: Context) {
        const lifecycle = lifecycleOf(ctx);
        const isDeprecated = lifecycle !== undefined && parseLifecycle(lifecycle).isDeprecated;
        const { choose } = (await documentsFor(isDeprecated, representations))[kind];
        represent(ctx, choose(ctx.req.headers.accept), placeOf(ctx, app), { title: app.info.title });
      },
  });
  const files = Object.entries(pageFiles).map(
    ([name, read]): Route => ({
      method: 'GET',
      path: `/docs/${name}`,
      createHandler: () => (ctx) => sendStoredFile(ctx, read()),
    }),
  );
  return [
    route('/openapi.json', 'document'),
    route('/docs/', 'page'),
    ...(app.hasProblemPages ? problemRoutes(app) : []),
    ...files,
  ];
}

function problemRoutes({ info, routes, kinds }: DocumentedApp): readonly Route[] {
  const showProblem = once(() => {
    const documented = routes.flatMap(({ operation }) => Object.keys(operation?.().problems ?? {}));
    const listed = new Set([...Object.keys(kinds), ...Object.keys(info.problems ?? {}), ...documented, ...common]);
    const table: ProblemTable = { ...problems, ...kinds };
    const root = routes.find(({ method, path }) => method === 'GET' && path === '/');
    const docs = { href: '../', text: 'API docs' };
    return createShowProblem(table, {
      listed: Object.keys(table).filter((slug) => listed.has(slug)),
      links: { above: [...(root?.title === undefined ? [] : [{ href: '../../', text: root.title }]), docs] },
    });
  });
  const route = (name: string): Route => ({
    method: 'GET',
    path: problemPages + name,
    createHandler: () => (ctx: Context) => showProblem()(ctx, ctx['params'].slug ?? ''),
  });
  return [route(''), route(':slug')];
}

/** The problems that a request to any app can have. */
const common = ['bad-path', 'bad-request', 'not-found', 'method-not-allowed', 'internal'];

/** The files of the page, read when first requested. */
const pageFiles: Readonly<Record<string, () => TaggedBody>> = {
  ...fileOf('docs.css', './browser/docs.css'),
  ...fileOf('docs.js', './browser/docs.js'),
};

function fileOf(name: string, url: string) {
  return { [name]: once(() => readPageFile(new URL(url, import.meta.url))) };
}

/** Adds links to the document and the page to the response of GET `/` (RFC 8631). */
export async function linkDocuments(ctx: Context, next: Next): Promise<void> {
  await next();
  const { basePath } = requestContext(ctx);
  ctx.append('Link', `<${basePath}/openapi.json>; rel="service-desc", <${basePath}/docs/>; rel="service-doc"`);
}

/** The representations of the document and the page. Both are rendered for a `Place`. */
interface Documents {
  readonly document: Representations;
  readonly page: Representations;
}

/** What differs between requests for the same document. */
interface Place {
  /** The absolute URL of the app's `/`. */
  readonly server: string;
  readonly problemPages: ProblemPages | undefined;
  readonly frame: PageFrame;
}

function placeOf(ctx: Context, { routes, problemPagesPath }: DocumentedApp): Place {
  const problemPages = problemPagesOf(ctx, problemPagesPath);
  const hasRoot = routes.some(({ method, path }) => method === 'GET' && path === '/');
  const frame = pageFrame(ctx, { problemPages: problemPages?.infoUrl, hasRoot });
  return { server: publicBase(ctx), problemPages, frame };
}

/**
 * Stand for what differs between requests, in texts that are rendered once. Each is at the start of a text. YAML quotes
 * texts that begin with `@` in the same way as JSON.
 */
const placeholders = { server: '@server@', infoUrl: '@problem-page@', type: '@problem-type@' } as const;

function valuesFor({ server, problemPages }: Place): readonly (readonly [placeholder: string, value: string])[] {
  return [
    [placeholders.server, server],
    [placeholders.infoUrl, problemPages?.infoUrl ?? ''],
    [placeholders.type, problemPages?.type ?? ''],
  ];
}

/** Loads the generator on demand, because most processes never serve a document. */
async function createDocuments(options: Omit<DocumentOptions, 'server' | 'problemPages'> & DocumentedApp) {
  const { createOpenApiDocument } = await import('./document.ts');
  const { createDocumentPage, documentPageHeaders } = await import('./page/page.ts');
  const { server, infoUrl, type } = placeholders;
  const problemPages = options.problemPagesPath === undefined ? undefined : { infoUrl, type };
  const document = createOpenApiDocument({ ...options, server, problemPages });
  const renderOnce = (formatter: Formatter): Formatter => {
    const text = once(() => formatter.format(document, ''));
    return { ...formatter, format: (place) => fillIn(text(), place as Place, quotedStart) };
  };
  const [json, openApi, yaml] = [renderOnce(jsonFormatter), renderOnce(openApiFormatter), renderOnce(yamlFormatter)];
  const { info } = options;
  const render = once(() => createDocumentPage(document, { info, problemPages: problemPages?.infoUrl }));
  const page: Formatter = {
    ...htmlFormatter,
    headers: documentPageHeaders,
    format: (place) => fillIn(render()((place as Place).frame), place as Place, escapeForPrograms),
  };
  return {
    document: createRepresentations([json, openApi, yaml]),
    page: createRepresentations([page, json, yaml]),
  };
}

/** `write` converts a text to how it is written in the document. */
function fillIn(document: string, place: Place, write: (text: string) => string): string {
  // Passes a function to `replaceAll`, which would interpret patterns such as `$&` in a string.
  return valuesFor(place).reduce(
    (filled, [placeholder, value]) => filled.replaceAll(write(placeholder), () => write(value)),
    document,
  );
}

/** The start of a text in JSON and YAML. */
function quotedStart(text: string): string {
  return JSON.stringify(text).slice(0, -1);
}

/** Encodes quotes and backslashes, because the page shows the URL in programs, inside of quotes. */
function escapeForPrograms(url: string): string {
  return escapeHtml(url.replace(/['"\\]/g, percentEncoded));
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** The media type that OpenAPI tools ask for. */
const openApiFormatter: Formatter = {
  ...jsonFormatter,
  type: 'application/vnd.oai.openapi+json',
  contentType: 'application/vnd.oai.openapi+json;version=3.1',
};

function once<Value>(create: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= create();
    return value;
  };
}
