/** Error bodies, the conversion of any thrown value to a problem, and pointers to faults. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import Koa from 'koa';
import { defineProblems, Problem, problem, queryFault } from '#http';
import { bodyPointer, errorBody, problemOf } from '../../src/http/problem.ts';

/** Creates the error that `ctx.throw` throws. */
function createHttpError(status: number, message = '', properties: Readonly<Record<string, unknown>> = {}): Error {
  try {
    return new Koa().context.throw(status, message, properties);
  } catch (error) {
    return error as Error;
  }
}

describe('errorBody', () => {
  it('contains the page, the detail and the faults, in this order, but never the cause or the headers', () => {
    const errors = [{ parameter: 'limit', detail: 'is not a number' }];
    const made = problem('bad-argument', { detail: 'No.', errors, cause: new Error('x'), headers: { Allow: 'GET' } });
    const expected = { code: 400, message: '400: Bad Request', info_url: 'https://x.test/y', detail: 'No.', errors };
    assert.equal(JSON.stringify(errorBody(made, 'https://x.test/y')), JSON.stringify(expected));
  });

  it('appends an extension after the standard members without replacing any', () => {
    const alternatives = [{ size: 'large', price: { amount: '120.00', currency: 'EUR' } }];
    const extension = { code: 200, message: 'fine', detail: 'x', alternatives };
    const body = errorBody(problem('forbidden-transition', { detail: 'None left.', extension }));
    const expected = { code: 409, message: '409: Conflict', detail: 'None left.', alternatives };
    assert.equal(JSON.stringify(body), JSON.stringify(expected));
  });
});

describe('problem', () => {
  it('names a slug that is not in the table, and those that are', () => {
    assert.throws(
      () => problem('nope' as never),
      /^TypeError: there is no problem "nope"; known: bad-path, .*not-found/,
    );
  });

  it('says when to try again, if its row does and the caller does not', () => {
    const headers = { Connection: 'close' };
    assert.deepEqual(problem('overloaded', { headers }).headers, { 'Retry-After': '1', ...headers });
    for (const name of ['Retry-After', 'retry-after'])
      assert.deepEqual(problem('overloaded', { headers: { [name]: '60' } }).headers, { [name]: '60' });
    assert.equal(problem('not-found').headers, undefined);
  });
});

describe('defineProblems', () => {
  const shop = defineProblems({
    'out-of-stock': { status: 409, meaning: 'It is sold.', remedy: 'Wait.' },
  });

  it('creates problems of its table, with the status and the meaning', () => {
    const { slug, status, message, kind } = shop.problem('out-of-stock');
    assert.deepEqual([slug, status, message, kind], ['out-of-stock', 409, 'It is sold.', shop.kinds['out-of-stock']]);
  });

  it('sends `Retry-After` with a problem that has its seconds', () => {
    const row = { status: 409, retryAfterSeconds: 30, meaning: 'It is sold.', remedy: 'Wait.' };
    assert.deepEqual(defineProblems({ sold: row }).problem('sold').headers, { 'Retry-After': '30' });
  });

  it('creates the problems that every API has', () => {
    assert.deepEqual(shop.problem('not-found').kind, problem('not-found').kind);
  });

  it('rejects other slugs, which are type errors as well', () => {
    // @ts-expect-error: a typing mistake.
    const mistyped = () => shop.problem('out-of-stok');
    assert.throws(mistyped, /^TypeError: there is no problem "out-of-stok"; known: .*, out-of-stock$/);
    // @ts-expect-error: every object has it.
    const inherited = () => shop.problem('constructor');
    assert.throws(inherited, /^TypeError: there is no problem "constructor"/);
  });

  for (const [what, slug, status] of [
    ['the name of a problem that every API has', 'not-found', 404],
    ['a name that is no part of a URL', 'Out of stock', 409],
    ['a status that is no error', 'sold', 200],
    ['a status that HTTP does not have', 'sold', 1000],
  ] as const)
    it(`rejects ${what}`, () => {
      const row = { status, meaning: 'It is sold.', remedy: 'Wait.' };
      assert.throws(() => defineProblems({ [slug]: row }), { name: 'TypeError', message: new RegExp(`"${slug}"`) });
    });

  it('keeps a problem of another copy of the package whole', async () => {
    const copy = await import(new URL('../../src/http/problem.ts?other-copy', import.meta.url).href);
    const thrown = copy.defineProblems(shop.kinds).problem('out-of-stock', { detail: 'Gone.' });
    const found = problemOf(thrown);
    assert.ok(found instanceof Problem);
    assert.deepEqual([found.slug, found.status, found.detail], ['out-of-stock', 409, 'Gone.']);
  });
});

describe('problemOf', () => {
  for (const [status, slug, detail] of [
    [400, 'bad-request', undefined],
    [400, 'bad-request', 'The dates overlap.'],
    [404, 'not-found', undefined],
    [405, 'method-not-allowed', undefined],
    [413, 'body-too-large', undefined],
    [409, 'bad-request', 'Sold out.'],
    [410, 'bad-request', undefined],
    [422, 'bad-request', undefined],
  ] as const)
    it(`converts an HTTP error with status ${status} to ${slug} with its message: ${detail}`, () => {
      const thrown = createHttpError(status, detail);
      const found = problemOf(thrown);
      assert.deepEqual([found.slug, found.status, found.detail, found.cause], [slug, status, detail, thrown]);
    });

  it('converts an HTTP error with status 429 to too-many-requests, which says when to try again', () => {
    const { slug, headers } = problemOf(createHttpError(429, 'Slowly, please.'));
    assert.deepEqual([slug, headers], ['too-many-requests', { 'Retry-After': '1' }]);
  });

  it('accepts a problem from another copy of the package', async () => {
    const copy = await import(new URL('../../src/http/problem.ts?copy', import.meta.url).href);
    const options = { detail: 'Slowly.', headers: { 'Retry-After': '7' }, errors: [{ detail: 'no' }], cause: 'theirs' };
    const thrown = copy.problem('too-many-requests', options);
    assert.ok(!(thrown instanceof Problem));
    const found = problemOf(thrown);
    const { slug, status, detail, headers, errors, cause } = found;
    assert.ok(found instanceof Problem);
    assert.deepEqual(
      { slug, status, detail, headers, errors, cause },
      { slug: 'too-many-requests', status: 429, ...options },
    );
  });

  for (const [what, thrown] of Object.entries<unknown>({
    'a problem with an unknown slug': Object.assign(new Error('secret'), { name: 'Problem', slug: 'constructor' }),
    'an error': new Error('the password is secret'),
    'an HTTP error above 499': createHttpError(503, 'the password is secret'),
    'an HTTP error that is not exposed': createHttpError(404, '', { expose: false }),
    'an exposed error above 499': createHttpError(502, 'secret', { expose: true }),
    'an error with only a status': Object.assign(new Error('secret'), { status: 404 }),
    'an exposed status below 400': Object.assign(new Error('secret'), { status: 200, expose: true }),
    'an exposed status that is not a number': Object.assign(new Error('secret'), { status: '404', expose: true }),
    'a plain object': { status: 404, expose: true },
    'a string': 'secret',
    null: null,
    undefined: undefined,
  }))
    it(`converts ${what} to an internal error that reveals nothing but keeps its cause`, () => {
      const found = problemOf(thrown);
      assert.deepEqual([found.slug, found.status, found.cause], ['internal', 500, thrown]);
      assert.deepEqual(errorBody(found), { code: 500, message: '500: Internal Server Error' });
    });
});

describe('queryFault', () => {
  it('names the argument unchanged, but shortens a long name', () => {
    assert.deepEqual(queryFault('a/b~c d', 'x'), { parameter: 'a/b~c d', detail: 'x' });
    assert.ok((queryFault('x'.repeat(1000), '').parameter ?? '').length < 70);
    assert.deepEqual(queryFault('', 'x'), { detail: 'x' });
  });
});

describe('bodyPointer', () => {
  it('escapes slashes and tildes (RFC 6901)', () => {
    assert.equal(bodyPointer([]), '');
    assert.equal(bodyPointer(['a', 0, 'b/c~d', '']), '/a/0/b~1c~0d/');
  });

  it('can be parsed back into its steps', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 30 })), (path) => {
        const steps = bodyPointer(path).split('/').slice(1);
        assert.deepEqual(
          steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')),
          path,
        );
      }),
    );
  });
});
