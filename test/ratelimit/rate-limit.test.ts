/** `rateLimit` in a plain Koa app, which renders no problems and opens no request context. */
import assert from 'node:assert/strict';
import Koa, { type Middleware } from 'koa';
import supertest from 'supertest';
import { basicAuth } from '#auth';
import { createAddresses } from '#http';
import {
  createLimiter,
  createMemoryCounters,
  type Limiter,
  type OneLimit,
  type RateLimitOptions,
  type RateLimitRequest,
  rateLimit,
} from '#ratelimit';

const behindProxy = createAddresses({ trustedProxies: ['127.0.0.1', '::1'] });

/** Allows two requests a day, unless the options say otherwise. `before`: middleware of the app. */
function setUp(options: Partial<RateLimitOptions & OneLimit> = {}, before: readonly Middleware[] = []) {
  const app = new Koa();
  const errors: unknown[] = [];
  app.on('error', (error) => void errors.push(error));
  for (const one of before) app.use(one);
  app.use(rateLimit({ requestsPerUnit: 2, unit: 'day', ...options })).use((ctx) => {
    ctx.body = 'reached';
  });
  return { http: supertest(app.callback()), errors };
}

const failing: Limiter = { shouldRateLimit: () => Promise.reject(new Error('down')) };

describe('rateLimit', () => {
  it('responds with 429 and the RateLimit headers when a client has used up the limit', async () => {
    const { http, errors } = setUp();
    for (const left of [1, 0]) {
      const { headers } = await http.get('/').expect(200, 'reached');
      assert.equal(headers['ratelimit-policy'], '"client";q=2;w=86400');
      assert.match(String(headers['ratelimit']), new RegExp(`^"client";r=${left};t=\\d+$`));
    }
    const { headers, body } = await http.get('/').expect(429);
    assert.deepEqual([body.code, body.message], [429, '429: Too Many Requests']);
    assert.match(body.detail, /^The limit "client" of 2 requests in 86400 seconds is exhausted\./);
    assert.ok(Number(headers['retry-after']) > 0);
    assert.match(String(headers['ratelimit']), /^"client";r=0;t=\d+$/);
    assert.deepEqual(errors, []);
  });

  it('counts clients by address, and an IPv6 client by its network', async () => {
    const { http } = setUp({ addresses: behindProxy });
    const from = (address: string) => http.get('/').set('X-Forwarded-For', address);
    for (const address of ['2001:db8::1', '2001:db8::2', '203.0.113.7']) await from(address).expect(200);
    await from('2001:db8::3').expect(429);
    await from('203.0.113.7').expect(200);
    await from('2001:db8:0:1::1').expect(200);
  });

  it('counts the users that basicAuth has found by name', async () => {
    const verdictOf = (authorization = '') => {
      const [name = ''] = atob(authorization.replace('Basic ', '')).split(':');
      return { kind: 'user', name, isAdmin: false } as const;
    };
    const { http } = setUp({}, [basicAuth({ authenticator: { verdictOf } })]);
    const as = (name: string) => http.get('/').auth(name, 'x');
    for (const status of [200, 200, 429]) await as('ann').expect(status);
    await as('bob').expect(200);
  });

  it('counts by a key of the app, and does not count a request without one', async () => {
    const { http } = setUp({ keyOf: (ctx) => ctx.get('X-Key') || undefined });
    const as = (key: string) => http.get('/').set('X-Key', key);
    for (const status of [200, 200, 429]) await as('a').expect(status);
    await as('b').expect(200);
    for (const status of [200, 200, 429]) await as('long'.repeat(500)).expect(status);
    for (let time = 0; time < 4; time += 1)
      assert.equal((await http.get('/').expect(200)).headers['ratelimit'], undefined);
  });

  it('lets no request pass when the key is not text, which all clients would share', async () => {
    const { http, errors } = setUp({ keyOf: (async () => 'a') as never });
    await http.get('/').expect(500);
    assert.match(String(errors), /the key of a request must be text/);
  });

  it('shares the counts of a limiter, separated by domain', async () => {
    const limiter = createLimiter({ limits: [], counters: createMemoryCounters() });
    const apps = [{ limiter }, { limiter }, { limiter, domain: 'other' }].map((one) => setUp(one).http);
    for (const [index, status] of [200, 200, 200].entries()) await apps[index]?.get('/').expect(status);
    for (const [index, status] of [429, 429, 200].entries()) await apps[index]?.get('/').expect(status);
  });

  it('sends the limit to the limiter', async () => {
    const requests: RateLimitRequest[] = [];
    const limiter: Limiter = {
      shouldRateLimit(request) {
        requests.push(request);
        return { overallCode: 'OK', statuses: [] };
      },
    };
    await setUp({ limiter, keyOf: () => 'a' })
      .http.get('/')
      .expect(200);
    const descriptor = { entries: [{ key: 'key', value: 'a' }], limit: { requestsPerUnit: 2, unit: 'day' } };
    assert.deepEqual(requests, [{ domain: 'app', descriptors: [descriptor] }]);
  });

  it('lets requests pass while the limiter is down, or rejects them if the app prefers that', async () => {
    await setUp({ limiter: failing }).http.get('/').expect(200);
    await setUp({ limiter: failing, failureModeDeny: true }).http.get('/').expect(503).expect('Retry-After', '1');
  });

  for (const [what, options, message] of [
    ['part of a request', { requestsPerUnit: 0.5 }, /`requestsPerUnit` must be a whole number/],
    ['no number', { requestsPerUnit: '2' }, /`requestsPerUnit` must be a whole number/],
    ['an unknown unit', { unit: 'fortnight' }, /`unit` must be second, minute/],
    ['an empty domain', { domain: '' }, /`domain` must be text/],
    ['an object that is not a limiter', { limiter: {} }, /the limiter has no function `shouldRateLimit`/],
  ] as const)
    it(`cannot be created with ${what}, because requests would pass uncounted`, () => {
      assert.throws(() => setUp(options as never), message);
    });

  it('lets no request pass when it is used without being called', async () => {
    const app = new Koa().on('error', () => {});
    app.use(rateLimit as unknown as Middleware).use((ctx) => {
      ctx.body = 'reached';
    });
    await supertest(app.callback()).get('/').expect(500);
  });
});
