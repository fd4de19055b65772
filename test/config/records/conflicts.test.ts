/** Mappings with the same match: which of them stay. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { configurationFrom } from '#config';

const head = { apiVersion: 'gateway/v1', kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };

/** The names of the mappings that stay of these, which are called by their position. */
function kept(...mappings: readonly object[]): readonly string[] {
  const records = mappings.map((fields, index) => ({ ...head, name: String(index), ...fields }));
  return configurationFrom({ records }).configuration.mappings.map(({ name }) => name);
}

function check(title: string, mappings: readonly object[], expected: readonly string[]): void {
  it(title, () => assert.deepEqual(kept(...mappings), expected));
}

describe('mappings with the same match', () => {
  check('stay where all weights add up to 100', [{ weight: 60 }, { weight: 40 }], ['0', '1']);
  check('stay where one takes what the others leave', [{ weight: 10 }, {}, { weight: 20 }], ['0', '1', '2']);
  check('stay where the weights leave nothing', [{ weight: 100 }, {}], ['0', '1']);
  check('are one where nobody says a weight', [{}, {}, {}], ['0']);
  check('lose those that would be more than 100', [{ weight: 70 }, { weight: 40 }, { weight: 30 }], ['0', '2']);
  check('lose a canary with nothing beside it', [{ weight: 10 }], []);
  check('may be one with all of the weight', [{ weight: 100 }], ['0']);
  check('may have a shadow beside them, which has a weight of its own', [{}, { shadow: true, weight: 5 }], ['0', '1']);
  check('may name the shadow first', [{ shadow: true }, {}], ['0', '1']);
  check('have one shadow', [{}, { shadow: true }, { shadow: true }], ['0', '1']);
  check('are nothing to copy where they redirect', [{ path_redirect: '/v2' }, { shadow: true }], ['0']);
  check('must agree on who is asked', [{ bypass_auth: true }, { weight: 10 }], ['0']);
  check('must agree on CORS', [{ cors: { origins: '*' } }, { weight: 10 }], ['0']);
  check('may differ in everything else', [{ timeout_ms: 1 }, { weight: 10, service: 'inn', rewrite: '' }], ['0', '1']);
});

describe('mappings of one prefix', () => {
  check('stay where they differ in host', [{ host: 'a.example' }, { hostname: 'b.example' }, {}], ['0', '1', '2']);
  check('stay where they differ in method', [{ method: 'GET' }, { method: 'GET', method_regex: true }], ['0', '1']);
  check('stay where they differ in headers', [{ headers: { a: '1' } }, { headers: { a: true } }], ['0', '1']);
  check('stay where they differ in the query', [{ query_parameters: { a: '1' } }, { headers: { a: '1' } }], ['0', '1']);
  check('stay where they differ in precedence', [{}, { precedence: 1 }], ['0', '1']);
  check(
    'stay where they differ in how it matches',
    [{}, { prefix_exact: true }, { case_sensitive: false }],
    ['0', '1', '2'],
  );
  check(
    'clash in any case where that makes no difference',
    [{ case_sensitive: false }, { prefix: '/V1/Hotels', case_sensitive: false }],
    ['0'],
  );
  check('clash however their host is written', [{ host: 'A.example' }, { hostname: 'a.example' }], ['0']);
  check(
    'clash in whatever order headers stand',
    [{ headers: { a: '1', b: '2' } }, { headers: { B: '2', A: '1' } }],
    ['0'],
  );
});

describe('the weights of a group', () => {
  it('never add up to more than 100 in what stays, and say so of everything else', () => {
    const weights = fc.array(fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(weights, (given) => {
        const records = given.map((weight, index) => ({
          ...head,
          name: String(index),
          ...(weight === undefined ? {} : { weight }),
        }));
        const { configuration, errors } = configurationFrom({ records });
        const sum = configuration.mappings.reduce((total, { weight = 0 }) => total + weight, 0);
        assert.ok(sum <= 100);
        assert.ok(configuration.mappings.filter(({ weight }) => weight === undefined).length <= 1);
        assert.equal(configuration.mappings.length + errors.length, records.length);
      }),
    );
  });
});
