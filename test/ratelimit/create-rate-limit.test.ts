/** `createRateLimit`, for servers that are not Koa's, and limits from data and from files. */
import assert from 'node:assert/strict';
import type { LimitDomainInput } from '#config';
import {
  createLimiter,
  createRateLimit,
  type Limiter,
  loadLimits,
  parseLimits,
  type RateLimitRequest,
} from '#ratelimit';
import { temporaryFiles } from '../support/temporary-files.ts';
import { untyped } from '../support/untyped.ts';

const failing: Limiter = { shouldRateLimit: () => Promise.reject(new Error('down')) };

const searches: LimitDomainInput = {
  domain: 'shop',
  descriptors: [
    {
      key: 'user',
      descriptors: [{ key: 'path', value: '/search', rate_limit: { unit: 'day', requests_per_unit: 1 } }],
    },
  ],
};

describe('createRateLimit', () => {
  it('allows requests with RateLimit headers, and denies them with 429, a wait and a sentence when none are left', async () => {
    const decide = createRateLimit({ requestsPerUnit: 1, unit: 'day' });
    const allowed = await decide('ann');
    assert.ok(allowed.allowed);
    assert.equal(allowed.headers['RateLimit-Policy'], '"key";q=1;w=86400');
    assert.match(String(allowed.headers['RateLimit']), /^"key";r=0;t=\d+$/);
    const denied = await decide('ann');
    assert.ok(!denied.allowed);
    assert.equal(denied.status, 429);
    assert.equal(denied.headers['Retry-After'], String(denied.retryAfterSeconds));
    assert.match(String(denied.headers['RateLimit']), /^"key";r=0;t=\d+$/);
    assert.match(
      denied.detail,
      /^The limit "key" of 1 requests in 86400 seconds is exhausted\. Send the request again/,
    );
    assert.equal((await decide('bob')).allowed, true);
  });

  it('asks for the limits that the limiter has for the entries of the client', async () => {
    const limiter = createLimiter({ limits: await parseLimits([searches]) });
    const decide = createRateLimit({ limiter, domain: 'shop' });
    const search = { user: 'ann', path: '/search' };
    assert.equal((await decide(search)).allowed, true);
    const denied = await decide(search);
    assert.equal(denied.headers['RateLimit-Policy'], '"user.path";q=1;w=86400');
    assert.equal(denied.allowed, false);
    assert.deepEqual(await decide({ user: 'ann', path: '/' }), { allowed: true, headers: {} });
  });

  it('allows requests while the limiter is down, or denies them with 503 and the cause if the app prefers that', async () => {
    const lines: (string | undefined)[] = [];
    const line = (_fields: object, message?: string) => void lines.push(message);
    const logger = { info: line, warn: line, error: line };
    const one = { requestsPerUnit: 1, unit: 'day', limiter: failing } as const;
    assert.deepEqual(await createRateLimit({ ...one, logger })('ann'), { allowed: true, headers: {} });
    assert.deepEqual(lines, ['the limiter returned no decision']);
    const denied = await createRateLimit({ ...one, failureModeDeny: true })('ann');
    assert.ok(!denied.allowed);
    assert.deepEqual(
      [denied.status, denied.headers, String(denied.cause)],
      [503, { 'Retry-After': '1' }, 'Error: down'],
    );
  });

  it('sends a hash of a long value to the limiter', async () => {
    const requests: RateLimitRequest[] = [];
    const limiter: Limiter = {
      shouldRateLimit(request) {
        requests.push(request);
        return { overallCode: 'OK', statuses: [] };
      },
    };
    await createRateLimit({ limiter })({ user: 'x'.repeat(257) });
    assert.match(requests[0]?.descriptors[0]?.entries[0]?.value ?? '', /^[\w+/]{43}=$/);
  });

  for (const [what, key] of [
    ['nothing', undefined],
    ['no text', 7],
    ['no entries', {}],
    ['an entry without text', { user: undefined }],
    ['a promise', Promise.resolve('ann')],
  ] as const)
    it(`rejects a key that is ${what}, because all clients would share the limit`, async () => {
      await assert.rejects(createRateLimit({ requestsPerUnit: 1, unit: 'day' })(key as never), TypeError);
    });

  it('cannot be created without a limit and without a limiter that has some', () => {
    assert.throws(() => createRateLimit({} as never), /`requestsPerUnit` must be a whole number/);
    assert.throws(() => createRateLimit({ unit: 'day', limiter: failing } as never), /`requestsPerUnit`/);
  });
});

describe('limits without a gateway', () => {
  const writeFiles = temporaryFiles();

  it('are read from the files of a directory', async () => {
    const directory = await writeFiles({ 'ratelimit/shop.yaml': JSON.stringify(searches) });
    const [domain] = await loadLimits(directory);
    assert.deepEqual([domain?.domain, domain?.descriptors[0]?.key], ['shop', 'user']);
  });

  it('are refused as a whole, with every error and its fix, in files and in data', async () => {
    const wrong = { domain: 'shop', descriptors: [{ key: 'user', rate_limit: { unit: 'fortnight' } }] };
    const message = /domain shop: .*fortnight/;
    const directory = await writeFiles({ 'ratelimit/shop.yaml': JSON.stringify(wrong) });
    await assert.rejects(loadLimits(directory), message);
    await assert.rejects(parseLimits(untyped({ records: [], limits: [searches, wrong] }).limits ?? []), message);
  });
});
