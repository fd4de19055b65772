/** The diagnostics as a page: everything on it, everything escaped, nothing from elsewhere. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import type { Diagnostics } from '#diag';
import { html } from '#http';
import { readAssets } from '../../../src/diag/endpoint.ts';
import { createDiagnosticsFormatters } from '../../../src/diag/page/page.ts';
import { busyRoute, emptyDiagnostics, ownRoute, restingTraffic, sample } from '../diagnostics-sample.ts';

const formatters = createDiagnosticsFormatters(html`<form></form>`);
const formatter = formatters.find(({ type }) => type === 'text/html') ?? assert.fail();
const pageOf = (diagnostics: Diagnostics) => formatter.format(diagnostics, 'frontdesk diagnostics');

/** What is read, without markup. */
const textOf = (markup: string) =>
  markup
    .replaceAll('<wbr>', '')
    .replace(/<(?:script|template)\b.*?<\/(?:script|template)>|<[^>]*>/gs, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ');

/** Strings and numbers, wherever they stand; not those that only a picture or a link is made of. */
function leavesOf(value: unknown): (string | number)[] {
  if (typeof value === 'string' || typeof value === 'number') return [value];
  return Object.values(value ?? {}).flatMap(leavesOf);
}

describe('the diagnostics page', () => {
  const page = pageOf(sample);
  const text = textOf(page);

  it('answers in the order in which somebody asks who was woken up', () => {
    const headings = [...page.matchAll(/<h2[^>]*>(.*?)<\/h2>/g)].map(([, heading]) => heading);
    assert.deepEqual(headings, ['Health', 'Routes', 'Services', 'Limits', 'Explain a request', 'Requests that failed']);
    assert.ok(page.indexOf('id="verdict"') < page.indexOf('id="errors"'));
    assert.ok(page.indexOf('id="errors"') < page.indexOf('class="facts"'));
  });

  it('shows every field that the diagnostics have', () => {
    const {
      rows_max,
      offset,
      filter,
      at,
      configuration,
      uptime_seconds,
      routes,
      clusters,
      limits,
      failures,
      versions,
      ...rest
    } = sample;
    const shown = routes.map(({ health, cluster, traffic: { recent, ...traffic }, ...route }) => {
      const { slot_seconds, requests, errors, error_share, ...figures } = recent ?? { error_share: 0 };
      return [route, traffic, figures];
    });
    const told = [
      { ...rest, clusters: clusters.map(({ mappings_total, ...cluster }) => cluster) },
      shown,
      limits.map(({ fullness, ...limit }) => limit),
      versions.map(({ deprecation, sunset, ...version }) => version),
      configuration.hash,
    ];
    const missing = leavesOf(told).filter((leaf) => !text.includes(leaf.toLocaleString('en')));
    assert.deepEqual(missing, []);
    for (const words of [
      ...[
        '1 d 1 h',
        'generation 917',
        '2026-01-01 02:03:04 UTC',
        '2026-06-30 00:00:00 UTC',
        '2027-06-30 00:00:00 UTC',
        '2026-01-02 03:04:05 UTC',
        '62 % full',
        '15 %',
      ],
      ...[
        'degraded',
        'no requests',
        'hotel-canary and 9,305 more',
        'http://hotel #2',
        'PUT',
        'request-1',
        '504',
        'no answer within 3000 ms',
      ],
      ...['2026-01-02 03:04:01 UTC', 'upstream-timeout', 'hotel-that-failed', '/v1/hotels/1'],
    ])
      assert.ok(text.includes(words), words);
  });

  it('says in words and in a shape whether all is well, and what is not', () => {
    const verdict = (diagnostics: Diagnostics) =>
      /id="verdict"[^>]* data-state="(\w+)">(.*?)</.exec(pageOf(diagnostics))?.slice(1);
    assert.deepEqual(verdict(emptyDiagnostics), ['well', 'All is well']);
    assert.deepEqual(verdict(sample), [
      'ill',
      '1 configuration error; 1 circuit open: http://hotel #2; 1 route degraded: hotel; 1 address unwell: http://10.0.0.2:9002',
    ]);
    assert.match(page, /<title>1 configuration error; /);
  });

  it('leads from an error to its route, and from a failure to what its problem means', () => {
    assert.match(page, /<a href="#route-0">Mapping hotel<\/a>/);
    assert.match(page, /<a data-figure="problem" href="\.\.\/problems\/upstream-timeout">upstream-timeout<\/a>/);
  });

  it('leads from a route to what would become of a request to it, unless its prefix is no path', () => {
    assert.ok(page.includes('<a href="../explain?method=GET&#38;url=%2Fv1%2Fhotels">GET /v1/hotels</a>'));
    const pattern = { ...busyRoute, prefix: '/v[12]/.*', conditions: ['regex'] };
    assert.doesNotMatch(pageOf({ ...sample, routes: [pattern] }), /explain\?method/);
  });

  it('marks the routes that the server brings itself', () => {
    assert.match(page, /<tr data-row id="route-1" class="built-in">\n.*>built in</);
    assert.doesNotMatch(page, /<tr data-row id="route-0" class/);
  });

  it('tells a picture in words as well', () => {
    assert.match(
      page,
      /role="img"[^>]* aria-label="33 requests in five minutes, at most 4 a second; 5 of them failed"/,
    );
    assert.match(page, /aria-label="no requests in five minutes"/);
  });

  it('is whole when there is nothing to show', () => {
    const empty = textOf(pageOf(emptyDiagnostics));
    for (const words of [
      ...['All is well', '0 of 0 routes', 'All services run within this server.', 'No limits are configured here.'],
      ...['None since the start.', 'No route'],
    ])
      assert.ok(empty.includes(words), words);
    assert.doesNotMatch(empty, /undefined|NaN|Auth answers|Rate-limit answers|configuration error/);
  });

  it('shows two hundred routes at once, and says where to find the others', () => {
    const routes = Array.from({ length: 1_000 }, (_, index) => ({ ...busyRoute, name: `route-${index}` }));
    const some = { ...sample, routes, routes_total: 9_000, routes_matching: 7_000, offset: 1_000, filter: 'a&b' };
    const markup = pageOf(some);
    assert.equal(markup.match(/<tr data-row id="route-/g)?.length, 200);
    assert.match(textOf(markup), /1,001 to 1,200 of 7,000 routes are shown\./);
    assert.ok(markup.includes('<a rel="prev" href="?filter=a%26b&#38;offset=800">'));
    assert.ok(markup.includes('<a rel="next" href="?filter=a%26b&#38;offset=1200">'));
    assert.match(markup, /name="filter" type="search" value="a&#38;b"/);
  });

  it('says of how many its verdict is, and how many errors are not listed', () => {
    const markup = pageOf({ ...sample, routes_total: 9_000, errors_total: 1_200 });
    assert.match(textOf(markup), /1,200 configuration errors.* of the 2 routes listed here/);
    assert.match(textOf(markup), /1 of 1,200 errors are listed here/);
  });

  it('escapes whatever the configuration, services and clients say', () => {
    const hostile = '"><script>alert(1)</script>\'&<b>';
    const poisoned = JSON.parse(JSON.stringify(sample), (key, value) =>
      typeof value === 'string' && !/^(?:health|circuit|at|applied_at)$/.test(key) ? hostile : value,
    );
    const markup = pageOf({ ...poisoned, routes: [{ ...poisoned.routes[0], conditions: [hostile] }] });
    assert.doesNotMatch(markup, /<script>|<b>|alert\(1\)<\/script>|"">/);
    assert.ok(markup.includes('&#34;&#62;&#60;script&#62;'));
  });

  it('is made of any name that a record can have', () => {
    const named = pageOf({ ...sample, routes: [{ ...busyRoute, name: 'half \ud800', prefix: '/a b' }] });
    assert.match(named, /<details id="more-half-\ud800\/a-b">/);
  });

  it('needs nothing from elsewhere, nothing inline, and only what the server has', () => {
    const links = [...page.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, target = '']) => target);
    for (const target of links) assert.match(target, /^(?:[#?.]|data:image\/svg\+xml,|[a-z]+\.(?:css|js)$)/);
    assert.doesNotMatch(page, /\sstyle=|\son\w+=|<style|<script(?! type="module" src="diagnostics\.js")/);
    const files = links.filter((target) => /^[a-z]+\.(?:css|js)$/.test(target));
    assert.deepEqual(
      files.filter((name) => !readAssets().has(name)),
      [],
    );
  });

  it('comes with a policy that takes scripts and styles from this server alone', () => {
    assert.equal(
      formatter.headers?.['Content-Security-Policy'],
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
  });

  it('has an id for one thing each, and no link to nowhere', () => {
    const ids = [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length);
    const anchors = [...page.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id);
    assert.deepEqual(
      anchors.filter((id) => !ids.includes(id)),
      [],
    );
  });

  it('shows a route of its own without a record as one', () => {
    const only = pageOf({ ...sample, routes: [ownRoute], unmatched: restingTraffic });
    assert.doesNotMatch(textOf(only), /undefined|Time-out|Cluster http|Retries/);
  });
});

describe('readAssets', () => {
  it('has every file of the page, with its type', () => {
    const files = readdirSync(new URL('../../../src/diag/browser', import.meta.url)).filter(
      (name) => !name.endsWith('.json'),
    );
    const assets = readAssets();
    assert.deepEqual([...assets.keys()].toSorted(), files.toSorted());
    for (const [name, { contentType, body }] of assets) {
      assert.equal(contentType, name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8');
      assert.match(body, /^\/\*/, name);
      assert.ok(body.split('\n').length <= 401, name);
      assert.doesNotMatch(body, /https?:\/\/|@import|url\(|innerHTML|outerHTML|insertAdjacentHTML|eval\(/, name);
    }
  });

  it('has every module that another one imports', () => {
    const assets = readAssets();
    for (const [name, { body }] of assets) {
      for (const [, imported = ''] of body.matchAll(/^import .* from '\.\/(.*)';$/gm))
        assert.ok(assets.has(imported), `${name}: ${imported}`);
    }
  });
});
