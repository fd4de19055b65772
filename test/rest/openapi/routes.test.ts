/** The routes that serve an app's OpenAPI document and documentation page. */
import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import Koa from 'koa';
import mount from 'koa-mount';
import request from 'supertest';
import { z } from 'zod';
import { createRepresentations, createRequestContext, defineProblems } from '#http';
import { createView } from '#query';
import { createItem, createResourceApp, createVersions, item, type ResourceAppOptions } from '#rest';
import { createAddresses } from '../../../src/http/addresses.ts';

interface Shelf {
  readonly id: string;
}

const hostile = '<script>"x"</script> & `code`';

function createShelves(publicUrl?: string): Koa {
  const view = createView<Shelf>({
    key: 'id',
    fields: {
      id: {
        column: 'id',
        schema: z
          .string()
          .describe(hostile)
          .meta({ examples: [`it's <b>`] }),
      },
    },
  });
  const docs = { operationId: 'getShelf', summary: hostile, description: `One.\n\n- first\n- ${hostile}` };
  const info = { title: 'Shelves <&>', version: '7', description: hostile, problems: {} };
  const routes = [item<Shelf>({ docs, path: '/:id', title: 'Shelf', view, find: (ctx) => ({ id: ctx['params'].id }) })];
  const app = new Koa().use(createRequestContext(createAddresses({ publicUrl })));
  return app.use(mount(createResourceApp({ representations: createRepresentations(), info, routes })));
}

describe('documentation routes', () => {
  const shelves: RequestListener = createShelves('https://shelves.test').callback();
  const documentOf = async (handler: RequestListener, path = '/openapi.json') =>
    (await request(handler).get(path).expect(200).expect('Content-Type', 'application/json')).body;

  it('take precedence over other routes that match their paths', async () => {
    const { openapi, info } = await documentOf(shelves);
    assert.equal(openapi, '3.1.1');
    assert.equal(info.version, '7');
    await request(shelves).get('/docs/').expect(200).expect('Content-Type', 'text/html; charset=utf-8');
    await request(shelves).get('/other').expect(200, { id: 'other' });
  });

  it('document paths with their parameters and responses', async () => {
    const { paths } = await documentOf(shelves);
    assert.deepEqual(Object.keys(paths), ['/{id}']);
    const { operationId, parameters, responses } = paths['/{id}'].get;
    assert.equal(operationId, 'getShelf');
    assert.deepEqual(
      parameters.map(({ in: place, name }: Record<string, string>) => `${place} ${name}`),
      ['path id', 'query fields', 'header If-Match', 'header If-None-Match'],
    );
    assert.deepEqual(Object.keys(responses), ['200', '304', '400', '404', '406', '412', 'default']);
  });

  it('contain the URL of the app, for each host and mount path', async () => {
    const [{ url }] = (await documentOf(shelves)).servers;
    assert.equal(url, 'https://shelves.test');
    const host = new Koa().use(mount('/a/b', createShelves())).callback();
    const { body } = await request(host).get('/a/b/openapi.json').set('Host', 'one.test');
    assert.equal(body.servers[0].url, 'http://one.test/a/b');
    const again = await request(host).get('/a/b/openapi.json').set('Host', 'two.test:81');
    assert.equal(again.body.servers[0].url, 'http://two.test:81/a/b');
  });

  it('escape any URL in the document', async () => {
    const odd = `https://x.test/$&'"<i>`;
    const handler = createShelves(odd).callback();
    assert.equal((await documentOf(handler)).servers[0].url, odd);
    const { text: yaml } = await request(handler).get('/openapi.json').set('Accept', 'application/yaml');
    assert.ok(yaml.includes(JSON.stringify(odd)));
    const { text } = await request(handler).get('/docs/');
    assert.ok(text.includes('https://x.test/$&#38;%27%22&#60;i&#62;'));
    assert.ok(!text.includes('<i>'));
  });

  it('quote URLs in the shell commands of the page', async () => {
    const handler = createShelves("https://x.test/a';id;'").callback();
    const { text } = await request(handler).get('/docs/');
    assert.ok(text.includes('curl -i &#39;https://x.test/a%27;id;%27/it&#39;\\&#39;&#39;s%20%3Cb%3E&#39;'), text);
  });

  it('escape all texts on the page', async () => {
    const { text } = await request(shelves).get('/docs/');
    assert.doesNotMatch(text, /<script(?! (?:defer|type="module") src=)|<b>it/);
    assert.ok(text.includes('&#60;script&#62;&#34;x&#34;&#60;/script&#62; &#38; <code>code</code>'));
    assert.ok(text.includes('<title>Shelves &#60;&#38;&#62;</title>'));
    assert.ok(text.includes('<li>first</li>'));
  });

  it('respond 304 to their entity tag, and 406 to other media types', async () => {
    for (const path of ['/openapi.json', '/docs/']) {
      const { headers } = await request(shelves).get(path).expect(200).expect('Vary', 'Accept');
      await request(shelves).get(path).set('If-None-Match', String(headers['etag'])).expect(304);
      await request(shelves).get(path).set('Accept', 'image/png').expect(406);
    }
    await request(shelves).get('/openapi.json').set('Accept', 'text/html').expect(406);
    const { body } = await request(shelves).get('/openapi.json').set('Accept', 'image/png').expect(406);
    assert.match(body.detail, /application\/json, application\/vnd\.oai\.openapi\+json, application\/yaml/);
  });

  it('retry building the document after a failure', async () => {
    let attempts = 0;
    const info = {
      title: 'Shelves',
      version: '7',
      problems: {},
      get description() {
        attempts += 1;
        if (attempts === 1) throw new Error('not now');
        return 'One.';
      },
    };
    const representations = createRepresentations();
    const handler = createResourceApp({ representations, info, routes: [] }).callback();
    for (const path of ['/openapi.json', '/docs/']) {
      await request(handler)
        .get(path)
        .expect(path === '/docs/' ? 200 : 500);
      await request(handler).get(path).expect(200);
    }
    assert.equal(attempts, 2);
  });

  it('reject POST, and respond to HEAD without a body', async () => {
    for (const path of ['/openapi.json', '/docs/']) {
      await request(shelves).post(path).expect(405).expect('Allow', 'GET, HEAD, OPTIONS');
      const { text } = await request(shelves).head(path).expect(200);
      assert.equal(text ?? '', '');
    }
  });
});

describe('the documentation of an app without a gateway', () => {
  const shop = defineProblems({
    'out-of-stock': { status: 409, meaning: 'It is sold.', remedy: 'Order something else.' },
  });

  function createShop(options: Partial<ResourceAppOptions> = {}) {
    const view = createView<Shelf>({ key: 'id', fields: { id: { column: 'id', schema: z.string() } } });
    const docs = { operationId: 'getShelf', summary: 'Read', problems: { 'out-of-stock': {} } };
    const find = () => {
      throw shop.problem('out-of-stock');
    };
    return createResourceApp({
      problems: shop,
      info: { title: 'Shop', version: '1', description: 'A shop.' },
      ...options,
      routes: [item<Shelf>({ docs, path: '/:id', title: 'Shelf', view, find })],
    });
  }

  const mounted = new Koa().use(mount('/shop', createShop())).callback();
  const alone = createShop().callback();

  it('has problem pages where the info_url and the type of errors say, at whatever path the app is mounted', async () => {
    for (const [handler, path] of [
      [alone, ''],
      [mounted, '/shop'],
    ] as const) {
      const rfc9457 = { Accept: 'application/problem+json', Host: 'shop.test' };
      for (const [url, slug, status] of [
        ['/1', 'out-of-stock', 409],
        ['/1/2', 'not-found', 404],
      ] as const) {
        const { body } = await request(handler)
          .get(path + url)
          .set(rfc9457)
          .expect(status);
        assert.deepEqual(
          [body.type, body.info_url],
          [`${path}/docs/problems/${slug}`, `http://shop.test${path}/docs/problems/${slug}`],
        );
        const page = await request(handler).get(body.type).expect(200);
        assert.deepEqual([page.body.problem, page.body.status], [slug, status]);
      }
    }
  });

  it('lists the problems that the app has', async () => {
    const { body } = await request(alone).get('/docs/problems/').expect(200);
    const listed = body.problems.map(({ problem }: Record<string, string>) => problem);
    for (const slug of ['out-of-stock', 'not-found', 'not-acceptable', 'internal'])
      assert.ok(listed.includes(slug), slug);
    assert.ok(!listed.includes('upstream-failed'));
    await request(alone).get('/docs/problems/upstream-failed').expect(200);
    await request(alone).get('/docs/problems').expect(308);
    await request(alone).get('/docs/problems/nothing').expect(404);
    await request(alone).post('/docs/problems/').expect(405);
  });

  it('has no problem pages if they are elsewhere', async () => {
    const app = createShop({ problemPagesPath: '/help/' }).callback();
    const { body } = await request(app).get('/1').set('Host', 'shop.test').expect(409);
    assert.equal(body.info_url, 'http://shop.test/help/out-of-stock');
    await request(app).get('/docs/problems/').expect(404);
  });

  it('has the names of parameters without examples in the commands of the documentation', async () => {
    const { text } = await request(alone).get('/docs/').set('Host', 'shop.test').expect(200);
    assert.match(text, /<code>curl -i &#39;http:\/\/shop\.test\/id&#39;<\/code>/);
  });

  it('links to the versions beside it that have documentation, at whatever path they are mounted', async () => {
    const documented = (title: string) => createShop({ info: { title, version: '1', description: 'A shop.' } });
    const versions = createVersions({
      v1: documented('Old'),
      v2: documented('New'),
      v3: createResourceApp({ routes: [] }),
    });
    const handler = new Koa().use(mount('/shop', versions)).callback();
    const { text } = await request(handler).get('/shop/v1/docs/').set('Accept', 'text/html').expect(200);
    assert.match(text, /<a aria-current="page">v1<\/a><a href="\/shop\/v2\/docs\/">v2<\/a>/);
    assert.doesNotMatch(text, /v3\/docs/);
  });

  it('marks the operations that are deprecated', async () => {
    const view = createView<Shelf>({ key: 'id', fields: { id: { column: 'id', schema: z.string() } } });
    const docs = (operationId: string, deprecated: boolean) => ({ operationId, summary: operationId, deprecated });
    const routes = (['old', 'new'] as const).map((name) =>
      item<Shelf>({
        docs: docs(name, name === 'old'),
        path: `/${name}/:id`,
        title: 'Shelf',
        view,
        find: () => undefined,
      }),
    );
    const app = createResourceApp({ info: { title: 'Shop', version: '1', description: 'A shop.' }, routes }).callback();
    const { body } = await request(app).get('/openapi.json').expect(200);
    assert.deepEqual(
      Object.values<{ get: { deprecated?: boolean } }>(body.paths).map(({ get }) => get.deprecated),
      [true, undefined],
    );
    const { text } = await request(app).get('/docs/').set('Accept', 'text/html').expect(200);
    const marked = [...text.matchAll(/<h3 id="(\w+)-name">[^\n]*deprecated<\/b><\/h3>/g)].map(([, name]) => name);
    assert.deepEqual(marked, ['old']);
  });

  it('shows a schema that contains itself, up to a depth', async () => {
    const view = createView<Shelf>({ key: 'id', fields: { id: { column: 'id', schema: z.string() } } });
    const create = createItem({
      docs: { operationId: 'create', summary: 'Create' },
      path: '/',
      title: 'Shelf',
      schema: z.strictObject({ anything: z.json() }),
      view,
      create: async (_ctx, { responseFor }) => ({ response: responseFor({ id: '1' }), isReplayed: false }),
    });
    const info = { title: 'Shop', version: '1', description: 'A shop.' };
    const app = createResourceApp({ info, routes: [create] }).callback();
    const { text } = await request(app).get('/docs/').set('Accept', 'text/html').expect(200);
    assert.match(text, /<code>anything<\/code> <span class="type">string or number or .*?array of .*?any/);
  });

  it('says what a problem of the app means, and what to do', async () => {
    const { body } = await request(alone).get('/openapi.json').expect(200);
    const description = body.components.responses.OutOfStock.description;
    assert.equal(description, '`out-of-stock`: It is sold. Order something else.');
  });
});
