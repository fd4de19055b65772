/** Routes that say what they are: for programs at `/openapi.json`, for people at `/docs/`. */
import type { Context, Middleware, Next } from 'koa';
import { publicBase, type Representations, represent, requestContext } from '#http';
import type { About } from './document.ts';
import { createDocumentRepresentations, type DocumentRepresentations } from './document-representations.ts';
import type { DocumentedRoute, ResourceRoute } from './route.ts';

/** All routes of an app, and first among them the two that describe the others. */
export function documented(about: About, routes: readonly DocumentedRoute[]): readonly ResourceRoute[] {
  let made: Promise<DocumentRepresentations> | undefined;
  /** Who asks next tries again. */
  function forget(cause: unknown): never {
    made = undefined;
    throw cause;
  }
  const route = (path: string, purpose: keyof DocumentRepresentations): ResourceRoute => ({
    method: 'GET',
    path,
    answer: (representations) =>
      async function answerDocument(ctx: Context) {
        made ??= createDocumentRepresentations({ about, routes, representations }).catch(forget);
        const { choose } = (await made)[purpose];
        represent(ctx, choose(ctx.req.headers.accept), publicBase(ctx), { title: about.title });
      },
  });
  return [route('/openapi.json', 'forPrograms'), route('/docs/', 'forPeople'), ...routes.map(announce)];
}

/** The way in says where the documents are (RFC 8631). */
function announce(route: DocumentedRoute): ResourceRoute {
  if (route.path !== '/' || route.method !== 'GET') return route;
  const answer = (representations: Representations): Middleware => {
    const run = route.answer(representations);
    return async function announceDocuments(ctx: Context, next: Next) {
      await run(ctx as Parameters<Middleware>[0], next);
      const { basePath } = requestContext(ctx);
      ctx.append('Link', `<${basePath}/openapi.json>; rel="service-desc", <${basePath}/docs/>; rel="service-doc"`);
    };
  };
  return { ...route, answer };
}
