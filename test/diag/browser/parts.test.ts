/** The parts of the diagnostics page: every field, in words that a person understands, with links. */
import assert from 'node:assert/strict';
import type { Diagnostics } from '#diag';
import type { Content } from '../../../src/diag/browser/elements.js';
import { partsOf } from '../../../src/diag/browser/parts.js';
import { busyRoute, busyTraffic, emptyDiagnostics, ownRoute, restingTraffic, sample } from '../diagnostics-sample.ts';

/** Writes the content as HTML, without escaping, with what a user has to open. */
function markupOf(content: Content): string {
  if (content === undefined || content === false) return '';
  if (typeof content === 'string') return content;
  if (!('tag' in content)) return content.map(markupOf).join('');
  const { tag, attributes, children, body } = content;
  const written = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : ` ${name}="${value}"`,
  );
  return `<${tag}${written.join('')}>${markupOf([...children, body?.()])}</${tag}>`;
}

/** The text that a reader sees. */
const textOf = (markup: string) =>
  markup
    .replaceAll('<wbr></wbr>', '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');

const pageOf = (diagnostics: Diagnostics, typed = '') => markupOf(Object.values(partsOf(diagnostics, typed)));

const assertIncludes = (text: string, parts: readonly string[]) => {
  for (const part of parts) assert.ok(text.includes(part), part);
};

const matchesOf = (markup: string, pattern: RegExp) => [...markup.matchAll(pattern)].map(([, found = '']) => found);

/** Members that the page shows in other words, as a picture or not at all. */
const reworded = new Set([
  'at',
  'applied_at',
  'answered_at',
  'generation',
  'uptime_seconds',
  'filter',
  'offset',
  'rows_max',
  'recent',
  'health',
  'cluster',
  'mappings_total',
  'limits_total',
  'fullness',
  'deprecation',
  'expires_at',
  'sunset',
  'since',
  'failures',
  'keys_read_at',
  'last_error_at',
  'last_rejection_at',
]);

/** Collects all other strings and numbers, at any depth. */
function leavesOf(value: unknown): (string | number)[] {
  if (typeof value === 'string' || typeof value === 'number') return [value];
  return Object.entries(value ?? {}).flatMap(([name, member]) => (reworded.has(name) ? [] : leavesOf(member)));
}

describe('the parts of the diagnostics page', () => {
  const page = pageOf(sample);
  const text = textOf(page);

  it('show every field of the diagnostics', () => {
    assertIncludes(
      text,
      leavesOf(sample).map((leaf) => leaf.toLocaleString('en')),
    );
    assertIncludes(text, [
      '1 d 1 h',
      'generation 917',
      '2026-06-30 00:00:00 UTC',
      'shop.example',
      '2027-01-01 00:00:00 UTC',
      '2027-06-30 00:00:00 UTC',
      '62 % full',
      '15 %',
      '9,112',
      '9,113',
      '9,114',
      '914 ms',
      'AuthService auth-of-hotels',
      'administrators of AuthService auth-of-hotels',
      'user › city=… : 11 per minute',
      '9,119 more limits',
      '9,121 of 9,122 serve',
      '9,124 threads ended because of an error',
      'Thread 9,123, 1 min ago : out of memory',
      '915 ms',
      'no requests',
      'Since 2026-01-02 01:02:03 UTC : records and limits stay as they were.',
      'Since 2026-01-02 01:12:13 UTC Mapping shop/orders is refused: its last valid version stays.',
      'ingresses since 2026-01-02 02:03:04 UTC',
      'degraded',
      'healthy',
      'ejected',
      'http://hotel #2',
      'hotel-canary and 9,305 more',
      'PUT',
      '/v1/hotels/1',
      'hotel-that-failed',
      '504',
      'upstream-timeout',
      'no answer within 3000 ms',
      'request-1',
      '1 h ago',
      '9,702 failures',
      '3 h ago',
    ]);
  });

  it('show how long ago something happened, with the exact time in the tooltip', () => {
    assertIncludes(page, [
      '<time datetime="2026-01-01T02:03:04.000Z" title="2026-01-01 02:03:04 UTC">1 d 1 h ago</time>',
      '<time datetime="2026-01-02T03:04:02.000Z" title="2026-01-02 03:04:02 UTC">3 s ago</time>',
      '<time datetime="2026-01-02T03:04:01.000Z" title="2026-01-02 03:04:01 UTC">4 s ago</time>',
    ]);
  });

  it('link errors to routes, failures to problems, and paths other than patterns to explanations', () => {
    assertIncludes(page, [
      '<a href="../explain?method=GET&url=%2Fv1%2Fhotel%2F1">',
      '<h3 id="errors">1 configuration error</h3>',
      '<a href="#route-0">Mapping hotel</a>',
      '<a href="../problems/upstream-timeout">upstream-timeout</a>',
      '<a href="../explain?method=GET&url=%2Fv1%2Fhotels">GET /v1/hotels</a>',
    ]);
    const pattern = { ...busyRoute, prefix: '/v[12]/.*', conditions: ['regex'] };
    assert.doesNotMatch(pageOf({ ...sample, routes: [pattern], unmatched_requests: [] }), /explain\?method/);
  });

  it('link only to relative addresses, whatever the texts contain', () => {
    const hostile = 'javascript:alert(1)//"><script>';
    const poisoned = JSON.parse(JSON.stringify(sample), (key, value) =>
      typeof value === 'string' && !/^(?:health|circuit|at|since|applied_at)$/.test(key) ? hostile : value,
    );
    const links = matchesOf(pageOf({ ...poisoned, filter: hostile, routes_matching: 9 }), /href="([^"]*)"/g);
    assert.ok(links.length > 4);
    for (const link of links) assert.match(link, /^(?:#route-\d+$|\?|\.\.\/(?:explain\?|problems\/))[^<>:]*$/);
  });

  it('list the routes of records and the API versions, and collapse the pages and probes of the gateway', () => {
    const api = { ...ownRoute, name: 'api-v1', prefix: '/v1' };
    const listed = pageOf({ ...sample, routes: [busyRoute, ownRoute, api] });
    assert.match(
      listed,
      /<tr [^>]*id="route-0">.*<tr [^>]*id="route-2">.*<details id="built-in">.*<tr [^>]*id="route-1" class="built-in">/s,
    );
    assert.match(textOf(listed), /1 built-in route: pages and probes of the gateway/);
    assert.match(pageOf({ ...sample, filter: 'v1' }), /<details id="built-in" open="">/);
  });

  it('keep the name of a record and its file apart', () => {
    assert.match(page, /<span class="minor name">hotel<\/span><span class="minor place"><code>config\/<wbr>/);
  });

  it('say that a route is open, and by what its requests are counted where the limits are unknown', () => {
    const open = { ...busyRoute, auth: undefined, authenticated: false, limits: [], limits_total: 0 };
    assert.match(
      textOf(markupOf(partsOf({ ...sample, routes: [open] }, '').routes)),
      /config\/services\/hotel.yaml:9 open only from 10\.9\.0\.0\/16 counted by x-test, user \+ city /,
    );
  });

  it('do not praise a closed circuit, which says nothing about the addresses', () => {
    const [cluster = assert.fail()] = sample.clusters;
    const shownFor = (circuit: typeof cluster.circuit) =>
      matchesOf(
        markupOf(partsOf({ ...sample, clusters: [{ ...cluster, circuit }] }, '').targets),
        /(data-figure="circuit" data-state="[a-z]*")/g,
      );
    assert.deepEqual(shownFor('closed'), ['data-figure="circuit" data-state="none"']);
    assert.deepEqual(shownFor('open'), ['data-figure="circuit" data-state="error"']);
  });

  it('say of a broken record whether its last valid version is in use', () => {
    const errorsFor = (routes: Diagnostics['routes']) =>
      textOf(markupOf(partsOf({ ...sample, routes }, '').errors)).replaceAll(' ,', ',');
    assert.match(errorsFor([busyRoute]), /Mapping hotel, of which the last valid version is in use/);
    assert.doesNotMatch(errorsFor([]), /last valid version is in use/);
  });

  it('say why a route answers 503, and not that its last valid version is in use', () => {
    const refused = { ...sample, routes: [{ ...busyRoute, refusal: 'its AuthService is refused' }] };
    assertIncludes(textOf(pageOf(refused)), ['Answers 503 its AuthService is refused']);
    assert.doesNotMatch(textOf(pageOf(refused)), /last valid version is in use/);
  });

  it('say why a route answers 500', () => {
    const broken = { ...sample, routes: [{ ...busyRoute, fault: 'Service shop/none does not exist' }] };
    assertIncludes(textOf(pageOf(broken)), ['Answers 500 Service shop/none does not exist']);
  });

  it('say what holds while the cluster cannot be read, and nothing about a cluster that is read or not used', () => {
    const { kubernetes = assert.fail() } = sample;
    const errorsFor = (more: Partial<typeof kubernetes>) =>
      textOf(markupOf(partsOf({ ...sample, kubernetes: { ...kubernetes, ...more } }, '').errors));
    assert.match(errorsFor({}), /cannot be read What was read last stays in use\./);
    assert.match(
      errorsFor({ read: false, unread: [] }),
      /cannot be read Until everything .* the server is not ready\./,
    );
    assert.doesNotMatch(errorsFor({ unread: [] }), /cannot be read/);
    assert.doesNotMatch(textOf(pageOf(emptyDiagnostics)), /Kubernetes/);
  });

  it('say how many threads share the figures, if there are several', () => {
    assert.match(text, /Connections 9,125 of 9,126 9,127 over HTTP\/2, with 9,128 requests/);
    assert.match(text, /Threads 9,121 of 9,122 serve Counts are their sums, states the worst\./);
    assert.doesNotMatch(textOf(pageOf(emptyDiagnostics)), /Threads/);
  });

  it('hide the routes that do not contain what the user types, and count the others', () => {
    const filtered = pageOf({ ...sample, routes: [busyRoute, { ...busyRoute, name: 'car', prefix: '/cars' }] }, 'v1');
    assert.deepEqual(matchesOf(filtered, /<tr data-key="([^"]*)"[^>]* hidden="">/g), ['car /cars', 'no-route']);
    assert.match(filtered, /1 of 2 routes shown/);
    assert.match(page, /2 of 2 routes</);
  });

  it('have the scale and the time of each sparkline below it', () => {
    const axes = matchesOf(page, /<div class="axis" aria-hidden="true">(.*?)<\/div>/g).map((axis) =>
      textOf(axis).trim(),
    );
    assert.deepEqual([...new Set(axes)], ['−20 s  0 to 4/s  now'.replaceAll('  ', ' '), 'no requests']);
  });

  it('describe a sparkline in words', () => {
    const labels = matchesOf(page, /role="img" aria-label="([^"]*)"/g);
    for (const label of [
      '33 requests in five minutes, at most 4 a second; 5 of them failed',
      'no requests in five minutes',
    ])
      assert.ok(labels.includes(label), label);
  });

  it('are complete when there is no data to show', () => {
    const empty = textOf(pageOf(emptyDiagnostics));
    assertIncludes(empty, [
      '0 of 0 routes',
      'All services run in this server.',
      'No limits are configured here.',
      'None since the start.',
      'No route',
    ]);
    assert.doesNotMatch(empty, /undefined|NaN|Auth decisions|Rate-limit decisions|configuration error/);
    const builtIn = textOf(pageOf({ ...sample, routes: [ownRoute], unmatched: restingTraffic }));
    assert.doesNotMatch(builtIn, /undefined|Time-out|Cluster http|Retries/);
  });

  it('add up the traffic of all routes and of requests without one, counting routes of the same name once', () => {
    const trafficOf = (more: Partial<Diagnostics>) => {
      const tiles = markupOf(partsOf({ ...emptyDiagnostics, ...more }, '').summary);
      const [, shown = ''] = /<dt>Traffic<\/dt><dd>(.*?)<\/dd>/.exec(tiles) ?? [];
      return [textOf(shown).trim(), ...matchesOf(shown, /aria-label="([^"]*)"/g)];
    };
    assert.deepEqual(
      trafficOf({ routes: [busyRoute, { ...busyRoute, name: 'car' }, ownRoute], unmatched: busyTraffic }),
      [
        '27,336 requests/s, 15 % errors, 27,306 in flight −20 s 0 to 12/s now',
        '99 requests in five minutes, at most 12 a second; 15 of them failed',
      ],
    );
    assert.deepEqual(trafficOf({ routes: [busyRoute, busyRoute] }), trafficOf({ routes: [busyRoute] }));
    assert.deepEqual(trafficOf({}), [
      '0 requests/s, 0 % errors, 0 in flight no requests',
      'no requests in five minutes',
    ]);
  });

  it('say how full a limit is, or that this process has not counted a hit', () => {
    const [limit = assert.fail()] = sample.limits;
    const shownFor = (fullness: number | undefined) =>
      textOf(markupOf(partsOf({ ...sample, limits: [{ ...limit, fullness }] }, '').limits));
    assert.match(shownFor(0), / 0 % full /);
    assert.match(shownFor(0.62), / 62 % full /);
    assert.match(shownFor(1.5), / 100 % full /);
    assert.match(shownFor(undefined), / no hits here /);
  });

  it('show two hundred routes, and link to the previous and next ones', () => {
    const routes = Array.from({ length: 1_000 }, (_, index) => ({ ...busyRoute, name: `route-${index}` }));
    const some = { ...sample, routes, routes_total: 9_000, routes_matching: 7_000, offset: 1_000, filter: 'a&b' };
    const markup = pageOf(some);
    assert.equal(markup.match(/ id="route-/g)?.length, 200);
    assert.match(textOf(markup), /1,001 to 1,200 of 7,000 routes are shown\./);
    assert.ok(markup.includes('<a rel="prev" href="?filter=a%26b&offset=800">'));
    assert.ok(markup.includes('<a rel="next" href="?filter=a%26b&offset=1200">'));
  });

  it('say how many errors are listed, and that the traffic is that of the listed routes', () => {
    const many = textOf(pageOf({ ...sample, routes_total: 9_000, errors_total: 1_200 }));
    assert.match(many, /1,200 configuration errors/);
    assert.match(many, /1 of 1,200 errors are listed here/);
    assert.match(many, /Traffic of the routes listed here/);
  });

  it('use each id once, and contain the target of each link within the page', () => {
    const ids = matchesOf(page, /\sid="([^"]*)"/g);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of matchesOf(page, /href="#([^"]*)"/g)) assert.ok(ids.includes(id), id);
  });
});
