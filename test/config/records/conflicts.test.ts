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
  check('are one where none has a weight', [{}, {}, {}], ['0']);
  check('lose those that would be more than 100', [{ weight: 70 }, { weight: 40 }, { weight: 30 }], ['0', '2']);
  check('lose a canary with nothing beside it', [{ weight: 10 }], []);
  check('may be one mapping with all of the weight', [{ weight: 100 }], ['0']);
  check('may have a shadow beside them, whose weight counts apart', [{}, { shadow: true, weight: 5 }], ['0', '1']);
  check('may name the shadow first', [{ shadow: true }, {}], ['0', '1']);
  check('have one shadow', [{}, { shadow: true }, { shadow: true }], ['0', '1']);
  check('cannot be copied where they redirect', [{ path_redirect: '/v2' }, { shadow: true }], ['0']);
  check('must agree on authentication', [{ bypass_auth: true }, { weight: 10 }], ['0']);
  check('must agree on CORS', [{ cors: { origins: '*' } }, { weight: 10 }], ['0']);
  check('may differ in everything else', [{ timeout_ms: 1 }, { weight: 10, service: 'inn', rewrite: '' }], ['0', '1']);
});

describe('mappings of one prefix', () => {
  check('stay where they differ in host', [{ host: 'a.example' }, { hostname: 'b.example' }, {}], ['0', '1', '2']);
  check('stay where they differ in method', [{ method: 'GET' }, { method: 'GET', method_regex: true }], ['0', '1']);
  check('stay where they differ in headers', [{ headers: { a: '1' } }, { headers: { a: true } }], ['0', '1']);
  check('stay where they differ in the query', [{ query_parameters: { a: '1' } }, { headers: { a: '1' } }], ['0', '1']);
  check('stay where they differ in precedence', [{}, { precedence: 1 }], ['0', '1']);
  const anyCase = { case_sensitive: false };
  check('stay where one is exact or folds case', [{}, { prefix_exact: true }, anyCase], ['0', '1', '2']);
  check('clash where both fold case', [anyCase, { ...anyCase, prefix: '/V1/Hotels' }], ['0']);
  check('clash in either spelling of a host', [{ host: 'A.example' }, { hostname: 'a.example' }], ['0']);
  check('clash in any order of headers', [{ headers: { a: '1', b: '2' } }, { headers: { B: '2', A: '1' } }], ['0']);
});

describe('the weights of a group', () => {
  it('never add up to more than 100 in what stays, and every other mapping gets an error', () => {
    const field = fc.option(fc.record({ weight: fc.integer({ min: 0, max: 100 }) }), { nil: {} });
    fc.assert(
      fc.property(fc.array(field, { minLength: 1, maxLength: 6 }), (given) => {
        const records = given.map((fields, index) => ({ ...head, name: String(index), ...fields }));
        const { configuration, errors } = configurationFrom({ records });
        const sum = configuration.mappings.reduce((total, { weight = 0 }) => total + weight, 0);
        assert.ok(sum <= 100);
        assert.ok(configuration.mappings.filter(({ weight }) => weight === undefined).length <= 1);
        assert.equal(configuration.mappings.length + errors.length, records.length);
      }),
    );
  });
});
