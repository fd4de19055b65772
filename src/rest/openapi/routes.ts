/** Serves the document at /openapi.json and as a page at /docs/, made when it is first asked for. */
import type { Context, Next } from 'koa';
import {
  createRepresentations,
  escapeHtml,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  publicBase,
  type Representations,
  represent,
  requestContext,
  yamlFormatter,
} from '#http';
import type { Route } from '../operation.ts';
import type { ApiInfo, DocumentOptions } from './document.ts';

/** The two routes that describe the others. */
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
  return [route('/openapi.json', 'document'), route('/docs/', 'page')];
}

/** Adds links to the two to a response of GET `/` (RFC 8631). */
export async function linkDocuments(ctx: Context, next: Next): Promise<void> {
  await next();
  const { basePath } = requestContext(ctx);
  ctx.append('Link', `<${basePath}/openapi.json>; rel="service-desc", <${basePath}/docs/>; rel="service-doc"`);
}

/** Both represent the absolute URL of a server: the rest of the document is always the same. */
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

function once(make: () => string): () => string {
  let text: string | undefined;
  return () => {
    text ??= make();
    return text;
  };
}

/** The value comes from a function, since `replaceAll` would interpret `$&` in a string. */
function fill(text: string, part: string, value: string): string {
  return text.replaceAll(part, () => value);
}
