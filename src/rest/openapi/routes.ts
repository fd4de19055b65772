/** The routes that serve the OpenAPI document at /openapi.json, and the documentation page with its files at /docs/. */
import type { Context, Next } from 'koa';
import {
  createRepresentations,
  createShowProblem,
  escapeHtml,
  type Formatter,
  htmlFormatter,
  isDeprecated,
  jsonFormatter,
  type ProblemTable,
  problems,
  publicBase,
  type Representations,
  readPageFile,
  represent,
  requestContext,
  sendTagged,
  type TaggedBody,
  yamlFormatter,
} from '#http';
import type { Route } from '../operation.ts';
import type { DocumentOptions } from './document.ts';

/** The path of the list of problems. The page of a problem is below it, such as `/docs/problems/not-found`. */
export const problemPages = '/docs/problems/';

interface DocumentedApp extends Pick<DocumentOptions, 'info' | 'routes' | 'kinds'> {
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
        const { choose } = (await documentsFor(isDeprecated(ctx), representations))[kind];
        represent(ctx, choose(ctx.req.headers.accept), publicBase(ctx), { title: app.info.title });
      },
  });
  const files = Object.entries(pageFiles).map(
    ([name, read]): Route => ({
      method: 'GET',
      path: `/docs/${name}`,
      createHandler: () => (ctx) => sendTagged(ctx, read()),
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

/** The files of the page, read when first requested. Swagger UI comes from its package, or is copied by the build. */
const pageFiles: Readonly<Record<string, () => TaggedBody>> = {
  ...fileOf('swagger-ui.css', import.meta.resolve('#swagger-ui/swagger-ui.css')),
  ...fileOf('swagger-ui-bundle.js', import.meta.resolve('#swagger-ui/swagger-ui-bundle.js')),
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

/** The representations of the document and the page. Both are rendered for the absolute URL of the server. */
interface Documents {
  readonly document: Representations;
  readonly page: Representations;
}

/** A placeholder for the server's URL in texts that are rendered once. YAML quotes it the same way as JSON. */
const placeholder = ': server :';

/** Loads the generator on demand, because most processes never serve a document. */
async function createDocuments(options: Omit<DocumentOptions, 'server'>): Promise<Documents> {
  const { createOpenApiDocument } = await import('./document.ts');
  const { documentPage, documentPageHeaders } = await import('./page.ts');
  const document = createOpenApiDocument({ ...options, server: placeholder });
  const renderOnce = (formatter: Formatter): Formatter => {
    const text = once(() => formatter.format(document, ''));
    return {
      ...formatter,
      format: (server) => replaceLiteral(text(), JSON.stringify(placeholder), JSON.stringify(server)),
    };
  };
  const [json, openApi, yaml] = [renderOnce(jsonFormatter), renderOnce(openApiFormatter), renderOnce(yamlFormatter)];
  const text = once(() => documentPage(document, options.info));
  const page: Formatter = {
    ...htmlFormatter,
    headers: documentPageHeaders,
    // Single quotes are encoded because the page shows the URL in shell commands, inside single quotes.
    format: (server) => replaceLiteral(text(), placeholder, escapeHtml(String(server).replaceAll("'", '%27'))),
  };
  return {
    document: createRepresentations([json, openApi, yaml]),
    page: createRepresentations([page, json, yaml]),
  };
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

/** Passes a function to `replaceAll`, which would interpret patterns such as `$&` in a string. */
function replaceLiteral(text: string, part: string, value: string): string {
  return text.replaceAll(part, () => value);
}
