/** `/gateway/v0/diag/`: the endpoint, the page that its script fills, and the files of the page. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import Koa from 'koa';
import request from 'supertest';
import { parse } from 'yaml';
import { createDiagnostics, readDiagnostics } from '#diag';
import { explainForm } from '#explain';
import { silentLogger } from '#foundation';
import { createProblemResponses, createRequestContext, readPageFiles } from '#http';
import { partsOf } from '../../src/diag/browser/parts.js';
import { fileNames } from '../../src/diag/page.ts';
import type { Frontdesk } from '../../src/index.ts';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { parts } from './diagnostics-parts.ts';
import { emptyDiagnostics } from './diagnostics-sample.ts';

describe('the files of the page', () => {
  const directory = new URL('../../src/diag/browser/', import.meta.url);

  it('are all files of the folder with their types, and none loads other hosts or writes markup', () => {
    const files = readdirSync(directory);
    assert.deepEqual(fileNames.toSorted(), files.filter((name) => !name.endsWith('.json')).toSorted());
    for (const [name, { contentType, body }] of readPageFiles(directory, fileNames)) {
      assert.equal(contentType, name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8');
      assert.doesNotMatch(
        body,
        /https?:\/\/(?!www\.w3\.org\/2000\/svg')|@import|url\(|innerHTML|outerHTML|insertAdjacentHTML|eval\(/,
        name,
      );
    }
  });
});

const path = '/gateway/v0/diag/';

describe('createDiagnostics', () => {
  const appWith = (hasHome: boolean) =>
    new Koa()
      .use(createRequestContext(undefined, { hasHome }))
      .use(createProblemResponses({ logger: silentLogger }))
      .use(createDiagnostics((filter) => readDiagnostics(parts, filter), explainForm('../explain')).run)
      .callback();
  const app = appWith(false);

  it('responds with JSON, YAML or HTML, and rejects other media types', async () => {
    const read = (accept: string, type: string) =>
      request(app).get(path).set('Accept', accept).expect(200).expect('Content-Type', type);
    const { body } = await read('*/*', 'application/json');
    assert.equal(body.version, '1.2.3');
    assert.deepEqual(parse((await read('application/yaml', 'application/yaml')).text), body);
    const { text, headers } = await read('text/html', 'text/html; charset=utf-8');
    assert.match(text, /<h1>frontdesk diagnostics<\/h1>.*Routes/s);
    assert.match(headers['content-security-policy'] ?? '', /^default-src 'none';.* script-src 'self';/);
    await request(app).get(path).set('Accept', 'image/png').expect(406);
    await request(app).get(`${path}?offset=x`).set('Accept', 'image/png').expect(400);
  });

  it('has the JSON at an address that a browser can open, with the same query', async () => {
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const get = (query: string) => request(app).get(`${path}diagnostics.json${query}`).set('Accept', accept);
    const { body, headers } = await get('').expect(200).expect('Content-Type', 'application/json');
    assert.deepEqual([body.version, headers['cache-control']], ['1.2.3', 'no-store']);
    assert.deepEqual((await get('?filter=nothing')).body.routes, []);
    await get('?offset=x').expect(400);
  });

  describe('as a page', () => {
    const read = async (query = '') =>
      (
        await request(app)
          .get(path + query)
          .set('Accept', 'text/html')
          .expect(200)
      ).text;
    const matchesOf = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found = '']) => found);

    it('has a section for each part, says what to do without JavaScript, and contains no data', async () => {
      const page = await read();
      assert.deepEqual(matchesOf(page, /<h2[^>]*>(.*?)<\/h2>/g), [
        'Health',
        'Explain a request',
        'Routes',
        'Services',
        'Limits',
        'Requests without a route',
        'Failed requests',
      ]);
      assert.deepEqual(
        matchesOf(page, /data-part="(.*?)"/g).toSorted(),
        Object.keys(partsOf(emptyDiagnostics, '')).toSorted(),
      );
      assert.match(page, /<noscript><p[^>]*>[^<]*<a href="diagnostics\.json">as JSON<\/a>\.<\/p><\/noscript>/);
      assert.doesNotMatch(page, /1\.2\.3|\/v1\/hotels"|services\/car\.yaml/);
    });

    it('links to the landing page, which lists the routes and their documentation, where there is one', async () => {
      const link = '<a href="/">Home: routes and API docs</a>';
      const { text } = await request(appWith(true)).get(path).set('Accept', 'text/html');
      assert.ok(text.includes(link));
      assert.ok(!(await read()).includes(link));
    });

    it('has the filter of the query in its form, escaped, with a link that removes it', async () => {
      const page = await read('?filter=%22%3E%3Cscript%3E');
      assert.match(page, /name="filter" type="search" value="&#34;&#62;&#60;script&#62;"/);
      assert.match(page, /<a href="\.\/">Show all<\/a>/);
      assert.doesNotMatch(await read(), /Show all/);
    });

    it('has one inline style and no inline script, and links only to existing files and relative URLs', async () => {
      const page = await read();
      const links = matchesOf(page, /(?:href|src|action)="([^"]*)"/g);
      for (const target of links) assert.match(target, /^(?:[#?.]|data:image\/svg\+xml,|[a-z]+\.(?:css|js|json)$)/);
      assert.doesNotMatch(page, /\sstyle=|\son\w+=|<style.*<style|<script(?! type="module" src="diagnostics\.js")/);
      for (const target of links) {
        if (/^[a-z]/.test(target) && !target.startsWith('data:'))
          await request(app)
            .get(path + target)
            .expect(200);
      }
    });

    it('uses each id once, and contains the target of each internal link', async () => {
      const page = await read();
      const ids = new Set(matchesOf(page, /\sid="([^"]*)"/g));
      assert.equal(ids.size, matchesOf(page, /\sid="/g).length);
      for (const id of matchesOf(page, /href="#([^"]*)"/g)) assert.ok(ids.has(id), id);
    });
  });
});

describe('the diagnostics of a server', () => {
  const open = desksOf(testServers(after));
  let desk: Frontdesk;

  before(async () => {
    desk = await open({ config: './config' });
  });

  const read = (accept = 'application/json') => callAsDemo(desk, path).set('Accept', accept).expect(200);

  it('list the routes in matching order, with the file of each record', async () => {
    const { body } = await read();
    assert.deepEqual(
      body.routes.map(({ prefix, source = '-' }: { prefix: string; source?: string }) => [
        prefix,
        source.replace(/:\d+$/, ''),
      ]),
      [
        ['/gateway/v0/check_alive', '-'],
        ['/gateway/v0/check_ready', '-'],
        ['/gateway/v0/diag/events', '-'],
        ['/gateway/v0/problems', '-'],
        ['/gateway/v0/explain', '-'],
        ['/gateway/v0/metrics', '-'],
        ['/gateway/v0/limits', '-'],
        ['/gateway/v0/diag', '-'],
        ['/v1/hotels', 'config/services/hotel.yaml'],
        ['/v1/cars', 'config/services/car.yaml'],
        ['/v1', '-'],
        ['/v2', '-'],
      ],
    );
  });

  it('show absolute file names when the configuration directory is absolute', async () => {
    const { body } = await callAsDemo(await open({ config: resolve('config') }), path).expect(200);
    const places = [...body.routes, ...body.limits].flatMap(({ source }) => source ?? []);
    assert.ok(places.length > 2);
    for (const place of places) assert.ok(place.startsWith(`${resolve('config')}/`), place);
  });

  it('cannot be cached, and have no ETag', async () => {
    const { headers } = await read();
    assert.deepEqual([headers['cache-control'], headers.etag], ['no-store', undefined]);
    assert.equal(headers.vary, 'Accept, Accept-Encoding');
  });

  it('are filtered by the query, and each bad argument is reported', async () => {
    const { body } = await callAsDemo(desk, `${path}?filter=HOTEL`).expect(200);
    const names = body.routes.map(({ name }: { name: string }) => name);
    assert.deepEqual([names, body.routes_total, body.routes_matching], [['hotel'], 12, 1]);
    const query = `filter=${'x'.repeat(201)}&offset=x&offset=1&a=1&${'x'.repeat(39)}😀😀=1`;
    const { body: refused } = await callAsDemo(desk, `${path}?${encodeURI(query)}`).expect(400);
    assert.deepEqual(
      refused.errors.map(({ parameter }: { parameter: string }) => parameter),
      ['offset', 'a', `${'x'.repeat(39)}😀…`, 'filter', 'offset'],
    );
    await callAsDemo(desk, `${path}?filter=${'x'.repeat(2100)}`).expect(400);
  });

  it('include the files of the page, which need the same credentials and have an ETag', async () => {
    const script = `${path}diagnostics.js`;
    await call(desk, script).expect(401);
    const { headers } = await callAsDemo(desk, script)
      .expect(200)
      .expect('Content-Type', 'text/javascript; charset=utf-8')
      .expect('Cache-Control', 'private, no-cache')
      .expect('X-Content-Type-Options', 'nosniff');
    await callAsDemo(desk, script)
      .set('If-None-Match', headers.etag ?? '')
      .expect(304);
    for (const name of ['assets.ts', 'browser/diagnostics.js']) await callAsDemo(desk, path + name).expect(404);
  });
});
