import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import fc from 'fast-check';
import Koa from 'koa';
import { bodyPointer, errorBody, Problem, type ProblemSlug, problem, problems, queryPointer, quote } from '#http';
import { problemOf } from '../../src/http/problem.ts';

/** What `ctx.throw` throws. */
function createHttpError(status: number, message = '', properties: Readonly<Record<string, unknown>> = {}): Error {
  try {
    return new Koa().context.throw(status, message, properties);
  } catch (error) {
    return error as Error;
  }
}

const slugs = Object.keys(problems) as readonly ProblemSlug[];

describe('problem', () => {
  it('has the status of its row, and the meaning for the log', () => {
    for (const slug of slugs) {
      const made = problem(slug);
      assert.ok(made instanceof Problem && made instanceof Error);
      assert.deepEqual(
        [made.name, made.slug, made.status, made.message],
        ['Problem', slug, problems[slug].status, problems[slug].meaning],
      );
    }
  });

  it('carries what is special this time', () => {
    const cause = new Error('deep down');
    const errors = [{ pointer: '#/query/limit', detail: 'is not a number' }];
    const made = problem('access-denied', {
      detail: 'Not on Sundays.',
      errors,
      headers: { Allow: 'GET' },
      cause,
      status: 418,
    });
    assert.deepEqual(
      [made.status, made.message, made.detail, made.errors, made.headers, made.cause],
      [418, 'Not on Sundays.', 'Not on Sundays.', errors, { Allow: 'GET' }, cause],
    );
  });
});

describe('errorBody', () => {
  it('is the status, and the status with its reason phrase, for every problem', () => {
    for (const slug of slugs) {
      const { status } = problems[slug];
      assert.deepEqual(errorBody(problem(slug)), { code: status, message: `${status}: ${STATUS_CODES[status]}` });
    }
  });

  it('names the page about the problem behind them', () => {
    const body = errorBody(problem('not-found', { detail: 'No.' }), 'https://desk.test/problems/not-found');
    assert.deepEqual(Object.keys(body), ['code', 'message', 'info_url', 'detail']);
    assert.equal(body.info_url, 'https://desk.test/problems/not-found');
  });

  it('adds the detail and the faults, and never the cause or the headers', () => {
    const errors = [{ pointer: '#/query/limit', detail: 'is not a number' }];
    assert.deepEqual(
      errorBody(problem('bad-argument', { detail: 'No.', errors, cause: new Error('x'), headers: { Allow: 'GET' } })),
      { code: 400, message: '400: Bad Request', detail: 'No.', errors },
    );
  });
});

describe('the extension of a problem', () => {
  const alternatives = [{ room_type: 'double', price: { amount: '120.00', currency: 'EUR' } }];

  it('follows the members that every error has', () => {
    const body = errorBody(problem('sold-out', { detail: 'None left.', extension: { alternatives } }));
    assert.deepEqual(Object.entries(body), [
      ['code', 409],
      ['message', '409: Conflict'],
      ['detail', 'None left.'],
      ['alternatives', alternatives],
    ]);
  });

  it('takes the place of none of them', () => {
    const body = errorBody(
      problem('sold-out', { detail: 'None left.', extension: { code: 200, message: 'fine', detail: 'x' } }),
    );
    assert.deepEqual(body, { code: 409, message: '409: Conflict', detail: 'None left.' });
  });
});

describe('problemOf', () => {
  it('leaves a problem as it is', () => {
    const made = problem('not-found');
    assert.equal(problemOf(made), made);
  });

  function checkTold(thrown: Error, slug: ProblemSlug, status: number, detail: string | undefined) {
    it(`tells the client of ${thrown.name}: ${status} as ${slug}${detail === undefined ? '' : `: ${detail}`}`, () => {
      const found = problemOf(thrown);
      assert.deepEqual([found.slug, found.status, found.detail, found.cause], [slug, status, detail, thrown]);
    });
  }

  checkTold(createHttpError(400), 'bad-request', 400, undefined);
  checkTold(createHttpError(400, 'The dates overlap.'), 'bad-request', 400, 'The dates overlap.');
  checkTold(createHttpError(404), 'not-found', 404, undefined);
  checkTold(createHttpError(405), 'method-not-allowed', 405, undefined);
  checkTold(createHttpError(413), 'body-too-large', 413, undefined);
  checkTold(createHttpError(409, 'Sold out.'), 'bad-request', 409, 'Sold out.');
  checkTold(createHttpError(410), 'bad-request', 410, undefined);
  checkTold(createHttpError(422), 'bad-request', 422, undefined);

  it('keeps the headers that an HTTP error brings', () => {
    assert.deepEqual(problemOf(createHttpError(405, '', { headers: { Allow: 'GET' } })).headers, { Allow: 'GET' });
  });

  function checkHidden(what: string, thrown: unknown) {
    it(`makes ${what} an internal error that tells nothing but keeps its cause`, () => {
      const found = problemOf(thrown);
      assert.deepEqual([found.slug, found.status, found.cause], ['internal', 500, thrown]);
      assert.deepEqual(errorBody(found), { code: 500, message: '500: Internal Server Error' });
    });
  }

  checkHidden('an error', new Error('the password is secret'));
  checkHidden('an HTTP error above 499', createHttpError(503, 'the password is secret'));
  checkHidden('an HTTP error that is not exposed', createHttpError(404, '', { expose: false }));
  checkHidden('an exposed error above 499', createHttpError(502, 'secret', { expose: true }));
  checkHidden('an error with a status and nothing more', Object.assign(new Error('secret'), { status: 404 }));
  checkHidden('an exposed status that is no error', Object.assign(new Error('secret'), { status: 200, expose: true }));
  checkHidden(
    'an exposed status that is no number',
    Object.assign(new Error('secret'), { status: '404', expose: true }),
  );
  checkHidden('a plain object', { status: 404, expose: true });
  checkHidden('a string', 'secret');
  checkHidden('null', null);
  checkHidden('undefined', undefined);
});

describe('queryPointer', () => {
  const check = (name: string | undefined, expected: string) => assert.equal(queryPointer(name), expected);

  it('is a JSON pointer as a URI fragment', () => {
    check('limit', '#/query/limit');
    check('a/b~c d', '#/query/a~1b~0c%20d');
    check(undefined, '#/query');
  });

  it('is short for a long name', () => assert.ok(queryPointer('x'.repeat(1000)).length < 70));
});

describe('quote', () => {
  it('shortens between characters, never inside of one', () => {
    assert.equal(quote('😀'.repeat(41)), `"${'😀'.repeat(40)}…"`);
    assert.equal(quote('a"b'), '"a\\"b"');
  });
});

describe('bodyPointer', () => {
  it('escapes what stands for something else (RFC 6901)', () => {
    assert.equal(bodyPointer([]), '');
    assert.equal(bodyPointer(['a', 0, 'b/c~d', '']), '/a/0/b~1c~0d/');
  });

  it('leads back to the names it was made of', () => {
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
