/** Property test: the explanation of a random request predicts what the gateway actually does with it. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Mapping } from '#config';
import type { ExplainRequest, Explanation } from '#explain';
import { createLimiter, type RateLimitRequest } from '#ratelimit';
import {
  authRecordOf,
  explainOf,
  labelled,
  limitRecordOf,
  mappingOf,
  redirectOf,
  remote,
  startEdge,
} from '../support/edge.ts';
import { domain, limit, node } from '../support/limits.ts';
import { type TestServers, testServers } from '../support/serve.ts';
import { type ReceivedRequest, startUpstream } from '../support/upstream.ts';
import { sendRaw } from '../support/wire/raw-client.ts';

const exactly = (value: string) => ({ kind: 'exact', value }) as const;

/** Creates a mapping that adds its name to each response. */
function named(name: string, fields: Partial<Mapping>): Mapping {
  const add = [{ name: 'x-mapping', value: name, append: false }];
  return mappingOf({ name, responseHeaders: { add, remove: [] }, ...fields });
}

const labels = {
  gateway: [
    ...labelled('x-travel-user', 'user'),
    ...labelled('x-plan', 'plan'),
    {
      name: 'all',
      labels: [
        { kind: 'path', name: 'path' },
        { kind: 'remote_address', name: 'from' },
        { kind: 'masked_remote_address', name: 'network', ipv4: 8, ipv6: 64 },
        { kind: 'generic_key', name: 'generic_key', value: 'v' },
      ],
    },
  ] as const,
};

const cors = {
  origins: ['https://app.example'],
  methods: ['GET', 'PUT'],
  headers: ['x-a'],
  exposedHeaders: [],
  credentials: true,
  maxAgeSeconds: 60,
};

const mappings = [
  named('hotel', { labels, cors }),
  named('hotel-write', { method: { kind: 'regex', pattern: 'POST|PUT' }, rewrite: '/in/', labels }),
  named('hotel-beta', { headers: [{ name: 'x-beta', match: { kind: 'present' } }], hostRewrite: 'beta.example' }),
  named('rooms', {
    prefix: '/v1/hotels/rooms',
    bypassAuth: true,
    requestHeaders: { add: [{ name: 'x-added', value: 'by %PROTOCOL%', append: true }], remove: ['x-plan', 'accept'] },
  }),
  named('old', {
    prefix: '/old',
    redirect: redirectOf({ path: { kind: 'prefix', value: '/v1/hotels' }, status: 308 }),
  }),
  named('numbers', {
    prefix: '/n/(\\d+)/.*',
    prefixMatch: 'regex',
    regexRewrite: { pattern: '^/n/(\\d+)/', substitution: '/number/\\1/' },
    authService: 'second',
  }),
  named('away', { prefix: '/away', host: exactly('other.example'), rewrite: '' }),
  named('query', { prefix: '/', queryParameters: [{ name: 'q', match: exactly('1') }], precedence: 3, labels }),
  named('here', { prefix: '/here', service: 'here', requestHeaders: { add: [], remove: ['cookie'] } }),
];

/** Starts a gateway with two auth services, a limiter, and a local and a remote service, which record their requests. */
async function startWorld(servers: TestServers) {
  const answering = (header: string) => startUpstream(servers, (res) => void res.setHeader(header, 'ann').end());
  const upstream = await startUpstream(servers);
  const [first, second] = [await answering('x-travel-user'), await answering('x-second')];
  const here: Arrival[] = [];
  const counted: RateLimitRequest[] = [];
  const { shouldRateLimit, explain } = createLimiter({ limits: [domain('gateway', node('user', limit(1_000_000)))] });
  const edge = await startEdge(servers, {
    mappings,
    authServices: [
      { record: authRecordOf({ allowedRequestHeaders: ['x-plan'], pathPrefix: '/ask' }) },
      {
        record: authRecordOf({
          name: 'second',
          authService: 'second',
          isDefault: false,
          allowedAuthorizationHeaders: ['x-second', 'x-travel-user'],
          addAuthHeaders: [{ name: 'X-Forwarded-Proto', value: 'own' }],
          includeBody: { maxBytes: 10, allowPartial: true },
        }),
      },
    ],
    rateLimitService: limitRecordOf(),
    limiter: {
      explain,
      shouldRateLimit(request) {
        counted.push(request);
        return shouldRateLimit(request);
      },
    },
    targets: { hotel: remote(upstream, '/base'), auth: remote(first, '/checks'), second: remote(second) },
    services: {
      async here(ctx) {
        here.push({ method: ctx.method, url: ctx.url, headers: { ...ctx.req.headers } });
        ctx.body = 'ok';
      },
    },
  });
  return { edge, upstream, auths: { auth: first, second }, here, counted };
}

type World = Awaited<ReturnType<typeof startWorld>>;
type Arrival = Pick<ReceivedRequest, 'method' | 'url' | 'headers'>;

const hosts = fc.constantFrom('front.example', 'other.example:8080');
const methods = fc.constantFrom('GET', 'GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', 'TRACE');
const paths = fc.oneof(
  fc.constantFrom(
    '/v1/hotels',
    '/v1/hotels/rooms/1',
    '/old/x',
    '/n/12/a',
    '/n/12/%2e%2e',
    '/away/y',
    '/here/z',
    '/nowhere',
  ),
  fc
    .array(fc.constantFrom('/v1', '/hotels', '/rooms', '/n', '/7', '/%61', '//', '/..', '/%2F', '/here', '/a.b'))
    .map((pieces) => `/v1/hotels${pieces.join('')}`),
);
const searches = fc.constantFrom('', '', '?', '?q=1', '?q=1&q=2', '?a=%20b');
const header = fc.constantFrom<readonly [string, string]>(
  ['Accept', 'text/html'],
  ['Access-Control-Request-Method', 'PUT'],
  ['Authorization', 'Basic ZGVtbzpkZW1v'],
  ['Connection', 'x-plan, te'],
  ['Cookie', 'a=1'],
  ['Cookie', 'b=2'],
  ['Forwarded', 'for=1.2.3.4'],
  ['Origin', 'https://app.example'],
  ['Origin', 'https://else.example'],
  ['TE', 'trailers'],
  ['User-Agent', 'one'],
  ['User-Agent', 'two'],
  ['Via', '1.1 frontdesk'],
  ['Via', '1.1 frontdesk, 1.1 frontdesk, 1.1 frontdesk, 1.1 frontdesk, 1.1 frontdesk'],
  ['X-Beta', ''],
  ['X-Forwarded-For', '1.2.3.4'],
  ['X-Plan', 'gold'],
  ['X-Plan', 'ü'],
  ['X-Request-Id', 'mine'],
  ['X-Travel-User', 'admin'],
  ['X_Travel_User', 'admin'],
);

const requests: fc.Arbitrary<ExplainRequest> = fc
  .record({ method: methods, host: hosts, path: paths, search: searches, headers: fc.array(header, { maxLength: 6 }) })
  .map(({ method, host, path, search, headers }) => ({
    method,
    url: path + search,
    headers: [['Host', host], ['Connection', 'close'], ...headers],
    user: 'ann',
  }));

interface ActualResponse {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
}

async function send({ edge }: World, { method, url, headers = [] }: ExplainRequest): Promise<ActualResponse> {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  const bytes = Buffer.from([`${method} ${url} HTTP/1.1`, ...lines, '', ''].join('\r\n'), 'utf8').toString('latin1');
  const received = await sendRaw(edge.port, bytes);
  const header = (name: string) => new RegExp(`^${name}: (.*?)\r$`, 'im').exec(received)?.[1];
  return { status: Number(received.slice(9, 12)), header };
}

/** Makes requests comparable. Leaves out connection headers, which undici sets. */
function comparable({ method, url, headers }: Arrival) {
  const connectionHeaders = ['connection', 'content-length', 'transfer-encoding'];
  const explained = Object.entries(headers).filter(([name]) => !connectionHeaders.includes(name));
  return { method, url, headers: explained.map(([name, value]) => [name, String(value).trim()] as const).sort() };
}

function arrivalOf(method: string, url: string, headers: readonly { name: string; value: string }[]) {
  const joined = new Map<string, string>();
  for (const { name, value } of headers) joined.set(name, joined.has(name) ? `${joined.get(name)}, ${value}` : value);
  return comparable({ method, url, headers: Object.fromEntries(joined) });
}

function checkArrivals(explained: ReturnType<typeof comparable>, arrivals: readonly Arrival[]): void {
  const [arrival, ...more] = arrivals;
  assert.ok(arrival !== undefined && more.length === 0, `${arrivals.length} requests arrived`);
  const real = comparable(arrival);
  const values = new Map(explained.headers);
  // Concealed and generated values cannot be compared.
  const headers = real.headers.map(([name, value]) => [
    name,
    // The client sends UTF-8, which Node shows byte by byte.
    /…|\(generated for/.test(values.get(name) ?? '') ? values.get(name) : Buffer.from(value, 'latin1').toString(),
  ]);
  assert.deepEqual({ ...real, headers }, explained);
}

function checkResponse({ outcome, mapping, redirect, cors }: Explanation, { status, header }: ActualResponse): void {
  assert.equal(status, outcome.kind === 'forwarded' ? 200 : outcome.status);
  assert.equal(header('x-mapping'), outcome.kind === 'preflight' ? undefined : mapping?.name);
  assert.equal(header('location'), redirect?.location);
  const permitted = cors?.headers.find(({ name }) => name === 'Access-Control-Allow-Origin')?.value;
  assert.equal(header('access-control-allow-origin'), permitted);
}

function checkAuth({ auth }: Explanation, { auths }: World): void {
  for (const [name, { reached }] of Object.entries(auths)) {
    if (auth?.asked === true && auth.name === name)
      checkArrivals(arrivalOf(auth.method, auth.path, auth.headers), reached);
    else assert.equal(reached.length, 0, `${name} was called`);
  }
}

function checkLimit({ rate_limit: limited }: Explanation, { counted }: World): void {
  const descriptors = limited?.asked === true ? limited.descriptors : [];
  const callOf = (isFirst: boolean) =>
    descriptors.filter((one) => one.before_auth === isFirst).map(({ entries }) => entries);
  const explained = [callOf(true), callOf(false)].filter((entries) => entries.length > 0);
  const asked = counted.map(({ descriptors }) => descriptors.map(({ entries }) => entries));
  assert.deepEqual(asked, explained);
}

function checkService({ outcome, target }: Explanation, { upstream, here }: World): void {
  if (target === undefined || outcome.kind !== 'forwarded') {
    assert.equal(upstream.reached.length + here.length, 0);
    return;
  }
  const [idle, busy] = target.kind === 'local' ? [upstream.reached, here] : [here, upstream.reached];
  assert.equal(idle.length, 0);
  checkArrivals(arrivalOf(target.method, target.path, target.headers), busy);
}

describe('explain', () => {
  const servers = testServers();

  it('predicts mapping, auth request, descriptors, service request and status of any request', async () => {
    const world = await startWorld(servers);
    const lists = [
      world.upstream.reached,
      world.here,
      world.counted,
      ...Object.values(world.auths).map((a) => a.reached),
    ];
    const explain = explainOf(world.edge.gateway);
    await fc.assert(
      fc.asyncProperty(requests, async (request) => {
        for (const list of lists) (list as unknown[]).length = 0;
        const explained = await explain(request);
        assert.ok(
          lists.every(({ length }) => length === 0),
          'a service was called',
        );
        checkResponse(explained, await send(world, request));
        for (const check of [checkAuth, checkLimit, checkService]) check(explained, world);
      }),
      { numRuns: 150 },
    );
  });
});
