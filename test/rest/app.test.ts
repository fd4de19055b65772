/** An app of resources, and API versions side by side. Conformance tests cover their paths, redirects and mounts. */
import assert from 'node:assert/strict';
import Koa, { type Context, type Middleware } from 'koa';
import request from 'supertest';
import { z } from 'zod';
import { silentLogger } from '#foundation';
import { createRepresentations, problem, requestContext } from '#http';
import { createView } from '#query';
import { createResourceApp, createVersions, index, item } from '#rest';
import { createBookApp } from './book-app.ts';

const notFound = { code: 404, message: '404: Not Found' };

describe('createResourceApp', () => {
  it('renders errors of other modules as the problems that toProblem returns', async () => {
    const toProblem = (thrown: unknown) =>
      thrown instanceof Error && thrown.message.includes('shelf') ? problem('storage-unavailable') : undefined;
    const handler = createBookApp({ toProblem, logger: silentLogger }).callback();
    await request(handler).get('/broken').expect(503).expect('Retry-After', '1');
    await request(handler).get('/nowhere').expect(404, notFound);
  });
});

describe('a hand-written route', () => {
  it('handles its method, and is listed among those of its path', async () => {
    const deleted: string[] = [];
    const view = createView<{ id: string }>({ key: 'id', fields: { id: { column: 'id', schema: z.string() } } });
    const docs = { operationId: 'getBook', summary: 'Read' };
    const app = createResourceApp({
      info: { title: 'Books', version: '1', description: 'Books.' },
      routes: [
        item({ docs, path: '/books/:id', title: 'Book', view, find: (ctx) => ({ id: ctx['params'].id }) }),
        {
          method: 'DELETE',
          path: '/books/:id',
          createHandler: () => (ctx) => {
            if (ctx['params'].id === '9') throw problem('not-found');
            deleted.push(ctx['params'].id);
            ctx.status = 204;
          },
        },
      ],
    }).callback();
    await request(app).delete('/books/1').expect(204, '');
    assert.deepEqual(deleted, ['1']);
    await request(app)
      .delete('/books/9')
      .expect(404, /"code":404/);
    await request(app).put('/books/1').expect(405).expect('Allow', 'DELETE, GET, HEAD, OPTIONS');
    const { paths } = (await request(app).get('/openapi.json').expect(200)).body;
    assert.deepEqual(Object.keys(paths['/books/{id}']), ['get']);
  });
});

describe('a collection without its slash', () => {
  it('is redirected for every method, even when its path matches that of an item', async () => {
    const found = { books: 'books/' };
    const column = { column: 'books' as const, schema: z.string() };
    const view = createView<{ books: string }>({ key: 'books', fields: { books: column } });
    const docs = { operationId: 'getAnything', summary: 'Read' };
    const routes = [
      item({ docs, path: '/:id', title: 'Anything', view, find: () => found }),
      index({ docs, path: '/books/', title: 'Books', entries: {} }),
    ];
    const handler = createResourceApp({ representations: createRepresentations(), routes }).callback();
    for (const app of [createBookApp().callback(), handler])
      for (const method of ['get', 'head', 'post', 'delete', 'options'] as const)
        await request(app)[method]('/books').expect(308).expect('Location', '/books/');
    await request(handler).get('/others').expect(200, found);
  });
});

function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa({ env: 'test' }).on('error', () => {});
  for (const one of middleware) app.use(one);
  return app;
}

/** A version that responds with the request as it sees it. */
function mirror(name: string): Koa {
  return appOf((ctx) => {
    ctx.body = { version: name, path: ctx.path, query: ctx.querystring, base: requestContext(ctx).basePath };
  });
}

function serveVersions(versions: Readonly<Record<string, Koa>>) {
  return appOf(createVersions(versions), (ctx) => {
    ctx.body = 'the middleware after the versions';
  }).callback();
}

describe('createVersions', () => {
  const mirrors = serveVersions({ v1: mirror('v1'), v2: mirror('v2') });

  it('responds 404 to a path outside all versions, without a redirect or a call of the next middleware', async () => {
    const others = ['/', '/v', '/v3/', '/v10/', '/v1x/', '/V1/', '/%76%31/', '/x/v1/', '//v1/', '/v1;a=1/'];
    for (const url of [...others, '//evil.example', '//evil.example/v1', '//v1']) {
      const response = request(mirrors).get(url).expect(404, notFound).expect('Content-Type', 'application/json');
      assert.equal((await response).headers['location'], undefined);
    }
    await request(serveVersions({})).get('/').expect(404, notFound);
  });

  it('renders the errors of versions that do not render their own', async () => {
    const failing = appOf(() => {
      throw problem('not-ready', { headers: { 'Retry-After': '3' } });
    });
    const handler = serveVersions({ v1: failing, v2: appOf() });
    await request(handler)
      .get('/v1/x')
      .expect(503, /"code":503/)
      .expect('Retry-After', '3');
    await request(handler)
      .get('/v2/x')
      .set('Accept', 'application/yaml')
      .expect(404, 'code: 404\nmessage: "404: Not Found"\n');
  });
});

describe('the base path of a version', () => {
  it('includes the versions around it', async () => {
    const inner = appOf(createVersions({ beta: mirror('beta') }));
    const outer = appOf(createVersions({ v1: inner })).callback();
    await request(outer).get('/v1/beta/x').expect(200, { version: 'beta', path: '/x', query: '', base: '/v1/beta' });
    await request(outer).get('/v1/beta?a=b').expect(308).expect('Location', '/v1/beta/?a=b');
  });
});

describe('a version', () => {
  for (const [what, quiet] of Object.entries({
    'sends no response': appOf(() => {}),
    'calls next': appOf((_ctx, next) => next()),
    'has no middleware': appOf(),
  }))
    it(`responds 404 when it ${what}, without calling other middleware`, async () => {
      const others: string[] = [];
      const other = appOf((ctx) => void others.push(ctx.path));
      await request(serveVersions({ v1: quiet, v2: other }))
        .get('/v1/x')
        .expect(404, notFound);
      assert.deepEqual(others, []);
    });

  it('restores the path and base path of the host when it throws', async () => {
    const broken = appOf(() => {
      throw new Error('no');
    });
    const recorded: unknown[] = [];
    const host = async (ctx: Context, next: () => Promise<unknown>) => {
      const record = () => recorded.push([ctx.url, ctx.path, requestContext(ctx).basePath]);
      record();
      await next();
      record();
    };
    const outer = appOf(host, createVersions({ v1: broken }));
    await request(outer.callback()).get('/v1/x?a=b').expect(500, { code: 500, message: '500: Internal Server Error' });
    assert.deepEqual(recorded[1], recorded[0]);
    assert.deepEqual(recorded[0], ['/v1/x?a=b', '/v1/x', '']);
  });
});
