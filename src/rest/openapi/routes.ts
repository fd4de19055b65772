/** Serves the document at /openapi.json and as a page at /docs/ with its files, made when they are first asked for. */
import type { Context, Next } from 'koa';
import {
  createRepresentations,
  escapeHtml,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  type PageFile,
  publicBase,
  type Representations,
  readPageFile,
  represent,
  requestContext,
  sendPageFile,
  yamlFormatter,
} from '#http';
import type { Route } from '../operation.ts';
import type { ApiInfo, DocumentOptions } from './document.ts';

/** The routes that describe the others. */
export function documentRoutes(info: ApiInfo, routes: readonly Route[]): readonly Route[] {
  let made: Promise<Documents> | undefined;
  /** The next request tries again. */
  function forget(cause: unknown): never {
    made = undefined;
    throw cause;
  }
  const route = (path: string, kind: keyof Documents): Route => ({
    method: 'GET',
    path,
    createHandler: (representations) =>
      async function answerDocument(ctx: Context) {
        made ??= createDocuments({ info, routes, representations }).catch(forget);
        const { choose } = (await made)[kind];
        represent(ctx, choose(ctx.req.headers.accept), publicBase(ctx), { title: info.title });
      },
  });
  const files = Object.entries(pageFiles).map(
    ([name, read]): Route => ({
      method: 'GET',
      path: `/docs/${name}`,
      createHandler: () => (ctx) => sendPageFile(ctx, read()),
    }),
  );
  return [route('/openapi.json', 'document'), route('/docs/', 'page'), ...files];
}

/** Of the page, read when they are first asked for. Swagger UI is a package here, and copied by the build. */
const pageFiles: Readonly<Record<string, () => PageFile>> = {
  ...fileOf('swagger-ui.css', import.meta.resolve('#swagger-ui/swagger-ui.css')),
  ...fileOf('swagger-ui-bundle.js', import.meta.resolve('#swagger-ui/swagger-ui-bundle.js')),
  ...fileOf('docs.css', './browser/docs.css'),
  ...fileOf('docs.js', './browser/docs.js'),
};

function fileOf(name: string, url: string) {
  return { [name]: once(() => readPageFile(new URL(url, import.meta.url))) };
}

/** Adds links to the two to a response of GET `/` (RFC 8631). */
export async function linkDocuments(ctx: Context, next: Next): Promise<void> {
  await next();
  const { basePath } = requestContext(ctx);
  ctx.append('Link', `<${basePath}/openapi.json>; rel="service-desc", <${basePath}/docs/>; rel="service-doc"`);
}

/** Both contain the absolute URL of a server; the rest of the document is always the same. */
interface Documents {
  readonly document: Representations;
  readonly page: Representations;
}

/** In place of the server's URL, in texts that are written once. YAML must quote it as JSON does. */
const placeholder = ': server :';

/** Loads what makes a document only now: most processes are never asked for one. */
async function createDocuments(options: Omit<DocumentOptions, 'server'>): Promise<Documents> {
  const { createOpenApiDocument } = await import('./document.ts');
  const { documentPage, documentPageHeaders } = await import('./page.ts');
  const document = createOpenApiDocument({ ...options, server: placeholder });
  const written = (formatter: Formatter): Formatter => {
    const text = once(() => formatter.format(document, ''));
    return { ...formatter, format: (server) => fill(text(), JSON.stringify(placeholder), JSON.stringify(server)) };
  };
  const [json, openApi, yaml] = [written(jsonFormatter), written(openApiFormatter), written(yamlFormatter)];
  const text = once(() => documentPage(document));
  const page: Formatter = {
    ...htmlFormatter,
    headers: documentPageHeaders,
    // The page also shows it inside a shell's single quotes.
    format: (server) => fill(text(), placeholder, escapeHtml(String(server).replaceAll("'", '%27'))),
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
  tag: 'openapi',
};

function once<Made>(make: () => Made): () => Made {
  let made: Made | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The value comes from a function, since `replaceAll` would interpret `$&` in a string. */
function fill(text: string, part: string, value: string): string {
  return text.replaceAll(part, () => value);
}
