/** `/gateway/v0/diag/`: the endpoint, the page with every field and all text escaped, and its files. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import Koa from 'koa';
import request from 'supertest';
import { parse } from 'yaml';
import { createDiagnostics, type Diagnostics } from '#diag';
import { explainForm } from '#explain';
import { createProblemResponses, html, readPageFiles, silentLogger } from '#http';
import { createDiagnosticsFormatters, fileNames } from '../../src/diag/page.ts';
import type { Frontdesk } from '../../src/index.ts';
import { call, callAsDemo, desksOf } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';
import { parts } from './diagnostics-parts.ts';
import { busyRoute, emptyDiagnostics, ownRoute, restingTraffic, sample } from './diagnostics-sample.ts';

const formatters = createDiagnosticsFormatters(html`<form></form>`);
const formatter = formatters.find(({ type }) => type === 'text/html') ?? assert.fail();
const pageOf = (diagnostics: Diagnostics) => formatter.format(diagnostics, 'frontdesk diagnostics');

/** Extracts the text that a reader sees. */
const textOf = (markup: string) =>
  markup
    .replaceAll('<wbr>', '')
    .replace(/<(?:script|template)\b.*?<\/(?:script|template)>|<[^>]*>/gs, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ');

const assertIncludes = (text: string, parts: readonly string[]) => {
  for (const part of parts) assert.ok(text.includes(part), part);
};

const matchesOf = (markup: string, pattern: RegExp) => [...markup.matchAll(pattern)].map(([, found = '']) => found);

/** Members that the page shows in other words, as a picture or not at all. */
const reworded = new Set([
  ...['at', 'applied_at', 'generation', 'uptime_seconds', 'filter', 'offset', 'rows_max', 'recent', 'health'],
  ...['cluster', 'mappings_total', 'fullness', 'deprecation', 'sunset', 'failures'],
]);

/** Collects all other strings and numbers, at any depth. */
function leavesOf(value: unknown): (string | number)[] {
  if (typeof value === 'string' || typeof value === 'number') return [value];
  return Object.entries(value ?? {}).flatMap(([name, member]) => (reworded.has(name) ? [] : leavesOf(member)));
}

describe('the diagnostics page', () => {
  const page = pageOf(sample);
  const text = textOf(page);

  it('starts with the verdict and the errors, followed by the sections in order', () => {
    assert.deepEqual(matchesOf(page, /<h2[^>]*>(.*?)<\/h2>/g), [
      'Health',
      'Explain a request',
      'Routes',
      'Services',
      'Limits',
      'Requests without a route',
      'Failed requests',
    ]);
    const [verdict, errors, tiles] = ['id="verdict"', 'id="errors"', 'class="tiles"'].map((part) => page.indexOf(part));
    assert.ok(Number(verdict) > 0 && Number(verdict) < Number(errors) && Number(errors) < Number(tiles));
  });

  it('shows every field of the diagnostics', () => {
    assertIncludes(
      text,
      leavesOf(sample).map((leaf) => leaf.toLocaleString('en')),
    );
    assertIncludes(text, [
      ...['1 d 1 h', 'generation 917', '2026-01-01 02:03:04 UTC', '2026-06-30 00:00:00 UTC', '2027-06-30 00:00:00 UTC'],
      ...['2026-01-02 03:04:05 UTC', '62 % full', '15 %', '9,112', '9,113', '9,114', '914 ms', '915 ms', 'no requests'],
      ...['degraded', 'healthy', 'ejected', 'http://hotel #2', 'hotel-canary and 9,305 more'],
      ...['2026-01-02 03:04:01 UTC', 'PUT', '/v1/hotels/1', 'hotel-that-failed', '504', 'upstream-timeout'],
      ...['no answer within 3000 ms', 'request-1', '2026-01-02 03:04:02 UTC'],
    ]);
  });

  it('shows the verdict in words and by its style', () => {
    const check = (diagnostics: Diagnostics, ...expected: readonly [state: string, text: string]) =>
      assert.deepEqual(/id="verdict"[^>]* data-state="(\w+)">(.*?)</.exec(pageOf(diagnostics))?.slice(1), expected);
    check(emptyDiagnostics, 'ok', 'All is well');
    const faults =
      '1 circuit open: http://hotel #2; 1 route degraded: hotel; 1 address unhealthy: http://10.0.0.2:9002';
    check(sample, 'error', `1 configuration error; ${faults}`);
    assert.match(page, /<title>1 configuration error; /);
  });

  it('links errors to routes, failures to problems, and paths other than patterns to explanations', () => {
    assertIncludes(page, [
      '<a href="../explain?method=GET&#38;url=%2Fv1%2Fhotel%2F1">',
      '<h3 id="errors">1 configuration error</h3>',
      '<a href="#route-0">Mapping hotel</a>',
      '<a data-figure="problem" href="../problems/upstream-timeout">upstream-timeout</a>',
      '<a href="../explain?method=GET&#38;url=%2Fv1%2Fhotels">GET /v1/hotels</a>',
    ]);
    const pattern = { ...busyRoute, prefix: '/v[12]/.*', conditions: ['regex'] };
    assert.doesNotMatch(pageOf({ ...sample, routes: [pattern], unmatched_requests: [] }), /explain\?method/);
  });

  it('lists the routes of records first, and collapses the built-in ones', () => {
    assert.match(
      page,
      /<tr data-row id="route-0">.*<details id="built-in">.*<tr data-row id="route-1" class="built-in">/s,
    );
    assert.match(pageOf({ ...sample, filter: 'v1' }), /<details id="built-in" open>/);
  });

  it('describes a sparkline in words', () => {
    const labels = matchesOf(page, /role="img"[^>]* aria-label="([^"]*)"/g);
    for (const label of [
      '33 requests in five minutes, at most 4 a second; 5 of them failed',
      'no requests in five minutes',
    ])
      assert.ok(labels.includes(label), label);
  });

  it('is complete when there is no data to show', () => {
    const empty = textOf(pageOf(emptyDiagnostics));
    assertIncludes(empty, [
      ...['All is well', '0 of 0 routes', 'All services run in this server.', 'No limits are configured here.'],
      ...['None since the start.', 'No route'],
    ]);
    assert.doesNotMatch(empty, /undefined|NaN|Auth decisions|Rate-limit decisions|configuration error/);
    const builtIn = textOf(pageOf({ ...sample, routes: [ownRoute], unmatched: restingTraffic }));
    assert.doesNotMatch(builtIn, /undefined|Time-out|Cluster http|Retries/);
  });

  it('shows two hundred routes, and links to the previous and next ones', () => {
    const routes = Array.from({ length: 1_000 }, (_, index) => ({ ...busyRoute, name: `route-${index}` }));
    const some = { ...sample, routes, routes_total: 9_000, routes_matching: 7_000, offset: 1_000, filter: 'a&b' };
    const markup = pageOf(some);
    assert.equal(markup.match(/<tr data-row id="route-/g)?.length, 200);
    assert.match(textOf(markup), /1,001 to 1,200 of 7,000 routes are shown\./);
    assert.ok(markup.includes('<a rel="prev" href="?filter=a%26b&#38;offset=800">'));
    assert.ok(markup.includes('<a rel="next" href="?filter=a%26b&#38;offset=1200">'));
    assert.match(markup, /name="filter" type="search" value="a&#38;b"/);
  });

  it('says how many routes the verdict covers, and how many errors are listed', () => {
    const many = textOf(pageOf({ ...sample, routes_total: 9_000, errors_total: 1_200 }));
    assert.match(many, /1,200 configuration errors.* of the 2 routes listed here/);
    assert.match(many, /1 of 1,200 errors are listed here/);
  });

  it('escapes all text from the configuration, services and clients', () => {
    const hostile = '"><script>alert(1)</script>\'&<b>';
    const poisoned = JSON.parse(JSON.stringify(sample), (key, value) =>
      typeof value === 'string' && !/^(?:health|circuit|at|applied_at)$/.test(key) ? hostile : value,
    );
    const markup = pageOf({ ...poisoned, routes: [{ ...poisoned.routes[0], conditions: [hostile] }] });
    assert.doesNotMatch(markup, /<script>|<b>|alert\(1\)<\/script>|"">/);
    assert.ok(markup.includes('&#34;&#62;&#60;script&#62;'));
  });

  it('accepts any name that a record can have', () => {
    const named = pageOf({ ...sample, routes: [{ ...busyRoute, name: 'half \ud800', prefix: '/a b' }] });
    assert.match(named, /<details id="more-half-\ud800\/a-b">/);
  });

  it('has one inline style and no inline script, and links only to existing files and relative URLs', () => {
    const links = matchesOf(page, /(?:href|src|action)="([^"]*)"/g);
    for (const target of links) assert.match(target, /^(?:[#?.]|data:image\/svg\+xml,|[a-z]+\.(?:css|js)$)/);
    assert.doesNotMatch(page, /\sstyle=|\son\w+=|<style.*<style|<script(?! type="module" src="diagnostics\.js")/);
    for (const target of links)
      assert.ok(!/^[a-z]+\.(?:css|js)$/.test(target) || fileNames.some((name) => name === target), target);
  });

  it('uses each id once, and contains the target of each internal link', () => {
    const ids = new Set(matchesOf(page, /\sid="([^"]*)"/g));
    assert.equal(ids.size, matchesOf(page, /\sid="/g).length);
    for (const id of matchesOf(page, /href="#([^"]*)"/g)) assert.ok(ids.has(id), id);
  });
});

describe('the files of the page', () => {
  const directory = new URL('../../src/diag/browser/', import.meta.url);

  it('are all files of the folder with their types, and none loads other hosts or writes markup', () => {
    const files = readdirSync(directory);
    assert.deepEqual(fileNames.toSorted(), files.filter((name) => !name.endsWith('.json')).toSorted());
    for (const [name, { contentType, body }] of readPageFiles(directory, fileNames)) {
      assert.equal(contentType, name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8');
      assert.doesNotMatch(body, /https?:\/\/|@import|url\(|innerHTML|outerHTML|insertAdjacentHTML|eval\(/, name);
    }
  });
});

const path = '/gateway/v0/diag/';

describe('createDiagnostics', () => {
  const koa = new Koa().use(createProblemResponses({ logger: silentLogger }));
  const app = koa.use(createDiagnostics(parts, explainForm('../explain')).run).callback();

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
    assert.deepEqual([headers['cache-control'], headers.etag, headers.vary], ['no-store', undefined, 'Accept']);
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
