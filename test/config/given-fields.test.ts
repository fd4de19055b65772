/** Records of many optional fields, read at the cost of those that are given: it must make no other difference. */
import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import fc from 'fast-check';
import * as z from 'zod';
import { configurationFrom } from '#config';
import { createGivenFields } from '../../src/config/given-fields.ts';
import { mappingFieldNames } from '../../src/config/mapping.ts';

describe('the fields that are given', () => {
  const shape = {
    name: z.string(),
    size: z.number().default(3),
    tags: z
      .array(z.string())
      .transform((tags) => tags.join(' '))
      .optional(),
  };
  const read = createGivenFields(shape);

  it('are read with what the others are by default', () => {
    assert.deepEqual({ ...read({ name: 'a' }) }, { name: 'a', size: 3, tags: undefined });
    assert.deepEqual(read({ tags: ['b', 'c'], size: 4, name: 'a' }), { name: 'a', size: 4, tags: 'b c' });
    assert.deepEqual(read({ name: 'a', size: undefined }), { name: 'a', size: 3, tags: undefined });
  });

  for (const value of [
    {},
    { name: undefined },
    { name: 1 },
    { name: 'a', size: 'large' },
    { name: 'a', colour: 'red' },
    { name: 'a', constructor: 1 },
    JSON.parse('{ "name": "a", "__proto__": 1 }'),
    Object.create({ name: 'a' }),
    [{ name: 'a' }],
    'name',
    null,
    undefined,
  ])
    it(`leave ${inspect(value)} to the whole schema`, () => assert.equal(read(value), undefined));
});

describe('a Mapping of some fields', () => {
  const sound = new Map<string, readonly unknown[]>(
    Object.entries({
      prefix: ['/v1/hotels', '/v1/hotels/', '/', '/v[0-9]+/.*'],
      service: ['hotel', 'hotel:8080', 'https://hotel.example'],
      rewrite: ['', '/', '/inner/'],
      host: ['api.example'],
      hostname: ['*.example'],
      method: ['GET', 'GET|HEAD'],
      headers: [{ 'X-A': '1' }, { 'x-b': true }],
      regex_headers: [{ 'x-c': '[0-9]+' }],
      query_parameters: [{ q: '1' }],
      timeout_ms: [0, 3000],
      weight: [20],
      precedence: [-1],
      labels: [{ gateway: [{ user: [{ x: { header: 'X-User' } }] }] }],
      cors: [{ origins: '*' }],
      retry_policy: [{ retry_on: '5xx' }],
      add_request_headers: [{ 'x-d': 'e' }],
      remove_response_headers: ['x-f, x-g'],
      load_balancer: [{ policy: 'least_request' }],
      path_redirect: ['/elsewhere'],
      allow_upgrade: [['WebSocket']],
      auth_service: ['auth'],
    }),
  );
  const odd = [undefined, null, '', 'x', 0, 1, -1, 1.5, true, false, [], ['x'], {}, { x: 1 }];
  const names = [...mappingFieldNames, 'timeout', 'constructor'];
  const field = fc
    .constantFrom(...names)
    .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...(sound.get(name) ?? [true, false]), ...odd)));
  const soundField = fc
    .constantFrom(...sound.keys())
    .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...(sound.get(name) ?? []))));
  const fields = fc.oneof(fc.array(soundField, { maxLength: 6 }), fc.array(field, { maxLength: 4 }));

  it('is read to the same, right or wrong, whichever way it is read', () => {
    const outcomes = new Set<boolean>();
    fc.assert(
      fc.property(fields, (given) => {
        const head = { apiVersion: 'gateway/v1', kind: 'Mapping', name: 'hotel', prefix: '/hotel', service: 'hotel' };
        const record = { ...head, ...Object.fromEntries(given) };
        // What has no prototype is none of the maps that are read field by field.
        const bare = Object.assign(Object.create(null), record);
        const loaded = configurationFrom({ records: [record] });
        assert.deepEqual(loaded, configurationFrom({ records: [bare] }));
        outcomes.add(loaded.errors.length === 0);
      }),
      { numRuns: 1000 },
    );
    assert.equal(outcomes.size, 2);
  });
});
