/** Tests which of several mappings with the same match are right, and which get an error. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { configurationFrom, type Mapping } from '#config';
import { findConflicts } from '../../../src/config/records/conflicts.ts';
import { gatewayRouteOf, mappingOf } from '../../support/edge.ts';
import { untyped } from '../../support/untyped.ts';

const head = { apiVersion: 'gateway/v1', kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };

/** Returns the mappings without an error. Each is named after its position. */
function right<T extends object>(...mappings: readonly T[]) {
  const records = mappings.map((fields, index) => ({ ...head, name: String(index), ...fields }));
  const { configuration, errors } = configurationFrom(untyped({ records }));
  assert.equal(configuration.mappings.length, errors.length === 0 ? records.length : 0);
  const wrong = errors.map(({ record }) => record);
  return { records: records.filter(({ name }) => !wrong.includes(`Mapping ${name}`)), errors };
}

const namesOf = (records: readonly { readonly name: string }[]) => records.map(({ name }) => name);

function check(title: string, mappings: readonly object[], expected: readonly string[]): void {
  it(title, () => assert.deepEqual(namesOf(right(...mappings).records), expected));
}

describe('mappings with the same match', () => {
  check('are kept when their weights add up to 100', [{ weight: 60 }, { weight: 40 }], ['0', '1']);
  check('are kept when one without a weight gets the rest', [{ weight: 10 }, {}, { weight: 20 }], ['0', '1', '2']);
  check('are kept when the weights leave nothing for the one without a weight', [{ weight: 100 }, {}], ['0', '1']);
  check('are reduced to the first when none has a weight', [{}, {}, {}], ['0']);
  check(
    'lose those that would raise the total above 100',
    [{ weight: 70 }, { weight: 40 }, { weight: 30 }],
    ['0', '2'],
  );
  check('lose a canary without another mapping', [{ weight: 10 }], []);
  check('can be a single mapping with a weight of 100', [{ weight: 100 }], ['0']);
  check('can have a shadow, whose weight counts separately', [{}, { shadow: true, weight: 5 }], ['0', '1']);
  check('can list the shadow first', [{ shadow: true }, {}], ['0', '1']);
  check('can have only one shadow', [{}, { shadow: true }, { shadow: true }], ['0', '1']);
  check('cannot have a shadow when they redirect', [{ path_redirect: '/v2' }, { shadow: true }], ['0']);
  check('must agree on authentication', [{ bypass_auth: true }, { weight: 10 }], ['0']);
  check('must agree on CORS', [{ cors: { origins: '*' } }, { weight: 10 }], ['0']);
  check('can differ in everything else', [{ timeout_ms: 1 }, { weight: 10, service: 'inn', rewrite: '' }], ['0', '1']);
});

describe('mappings with the same prefix', () => {
  check('are kept when they differ in host', [{ host: 'a.example' }, { hostname: 'b.example' }, {}], ['0', '1', '2']);
  check('are kept when they differ in method', [{ method: 'GET' }, { method: 'GET', method_regex: true }], ['0', '1']);
  check('are kept when they differ in headers', [{ headers: { a: '1' } }, { headers: { a: true } }], ['0', '1']);
  check(
    'are kept when they differ in query parameters',
    [{ query_parameters: { a: '1' } }, { headers: { a: '1' } }],
    ['0', '1'],
  );
  check('are kept when they differ in precedence', [{}, { precedence: 1 }], ['0', '1']);
  const anyCase = { case_sensitive: false };
  check('are kept when one is exact or case-insensitive', [{}, { prefix_exact: true }, anyCase], ['0', '1', '2']);
  check('conflict when both are case-insensitive', [anyCase, { ...anyCase, prefix: '/V1/Hotels' }], ['0']);
  check('conflict in any spelling of the host', [{ host: 'A.example' }, { hostname: 'a.example' }], ['0']);
  check('conflict in any order of headers', [{ headers: { a: '1', b: '2' } }, { headers: { B: '2', A: '1' } }], ['0']);
});

describe('the weights of a group', () => {
  it('never exceed 100 among the mappings without an error, and each other one gets one', () => {
    const field = fc.record({ weight: fc.integer({ min: 0, max: 100 }) }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.array(field, { minLength: 1, maxLength: 6 }), (given) => {
        const { records, errors } = right(...given);
        const sum = records.reduce((total, { weight = 0 }) => total + weight, 0);
        assert.ok(sum <= 100);
        assert.ok(records.filter(({ weight }) => weight === undefined).length <= 1);
        assert.equal(records.length + errors.length, given.length);
      }),
    );
  });
});

describe('the Mappings of routes of the Gateway API', () => {
  const routed = (place: string, fields: Partial<Mapping> = {}) =>
    mappingOf({ gatewayRoute: gatewayRouteOf({ place }), ...fields });
  const messagesOf = (...mappings: readonly Mapping[]) => findConflicts(mappings).map(({ message }) => message);

  it('may have the same name, and the same match if they come from different ones', () => {
    assert.deepEqual(messagesOf(mappingOf(), routed('a'), routed('b')), []);
  });

  it('share requests by any weights, fractions included', () => {
    assert.deepEqual(messagesOf(...[33.3, 33.3, 0, 90].map((weight) => routed('a', { weight }))), []);
  });

  it('need the same access rules in a group, as all mappings do', () => {
    assert.deepEqual(messagesOf(routed('a', { weight: 50 }), routed('a', { weight: 50, bypassAuth: true })), [
      'does not have the same bypass_auth as Mapping hotel, with which it shares requests',
    ]);
  });

  it('have a shadow only from the same match of their route', () => {
    const shadow = (place: string) => routed(place, { shadow: true });
    assert.deepEqual(messagesOf(routed('a'), shadow('a')), []);
    assert.deepEqual(messagesOf(routed('a'), shadow('b')), [
      'no mapping matches the same requests, so there is nothing to copy',
    ]);
  });
});
