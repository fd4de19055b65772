/** The list of mappings that `frontdesk check` prints. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import { listRoutes } from '#gateway';
import { conditionsOf } from '../../src/gateway/route-listing.ts';
import { mappingOf } from '../support/edge.ts';

describe('the list of mappings', () => {
  it('stands in the order of trial, with what each asks, where it leads and where it is written', () => {
    const source = { file: 'services/hotel.yaml', line: 9 };
    const lines = listRoutes([
      mappingOf({ name: 'all', prefix: '/', source }),
      mappingOf({ source }),
      mappingOf({ name: 'book', method: { kind: 'exact', value: 'POST' }, service: 'booking:8080', source }),
      mappingOf({ name: 'old', prefix: '/old', source, redirect: { host: undefined, path: undefined, status: 308 } }),
    ]);
    assert.deepEqual(lines, [
      '/v1/hotels  POST  ->  booking:8080  (Mapping book, services/hotel.yaml:9)',
      '/v1/hotels        ->  hotel  (Mapping hotel, services/hotel.yaml:9)',
      '/old              ->  redirect (308)  (Mapping old, services/hotel.yaml:9)',
      '/                 ->  hotel  (Mapping all, services/hotel.yaml:9)',
    ]);
  });

  it('is empty without mappings', () => assert.deepEqual(listRoutes([]), []));

  function check(fields: Partial<Mapping>, ...expected: string[]) {
    it(`says ${expected.join(' and ') || 'nothing of what is as usual'}`, () =>
      assert.deepEqual(conditionsOf(mappingOf(fields)), expected));
  }

  check({});
  check({ prefixMatch: 'exact' }, 'exact');
  check({ prefixMatch: 'regex', prefix: '/v\\d+/.*' }, 'regex');
  check({ caseSensitive: false }, 'in any case');
  check({ method: { kind: 'regex', pattern: 'GET|HEAD' } }, '~ GET|HEAD');
  check({ host: { kind: 'exact', value: 'api.example' } }, 'host api.example');
  check({ host: { kind: 'suffix', value: '.example' } }, 'host *.example');
  check({ host: { kind: 'prefix', value: 'api.' } }, 'host api.*');
  check({ host: { kind: 'regex', pattern: 'a+' } }, 'host ~ a+');
  check(
    {
      headers: [
        { name: 'x-a', match: { kind: 'exact', value: '1' } },
        { name: 'x-b', match: { kind: 'present' } },
      ],
    },
    'x-a: 1',
    'x-b',
  );
  check(
    {
      queryParameters: [
        { name: 'a', match: { kind: 'exact', value: '1' } },
        { name: 'b', match: { kind: 'regex', pattern: '[0-9]+' } },
      ],
    },
    '?a=1',
    '?b ~ [0-9]+',
  );
  check({ precedence: -1, weight: 20 }, 'precedence -1', '20 %');
  check({ shadow: true, weight: 5 }, '5 %', 'shadow');

  it('shows no value that only those may know who pass by it', () => {
    const secrets = mappingOf({
      headers: [
        { name: 'x-api-key', match: { kind: 'exact', value: 'hidden' } },
        { name: 'authorization', match: { kind: 'regex', pattern: 'hidden.*' } },
        { name: 'x-beta', match: { kind: 'exact', value: 'shown' } },
      ],
      queryParameters: [{ name: 'token', match: { kind: 'exact', value: 'hidden' } }],
    });
    assert.deepEqual(conditionsOf(secrets), ['x-api-key: …', 'authorization ~ …', 'x-beta: shown', '?token=…']);
  });
});
