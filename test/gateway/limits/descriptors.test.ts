/** Labels of a mapping as descriptors of a request. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Label, LabelGroup } from '#config';
import type { RequestAttributes } from '#routing';
import { createDescriptors } from '../../../src/gateway/limits/descriptors.ts';

type HeaderLabel = Extract<Label, { kind: 'header' }>;

const label = (name: string, fields: Partial<HeaderLabel> = {}): Label => ({
  kind: 'header',
  name,
  header: name,
  omitIfNotPresent: true,
  default: '',
  ...fields,
});

const group = (...labels: Label[]): LabelGroup => ({ name: 'group', labels });

const attributes: RequestAttributes = {
  method: 'POST',
  path: '/v1/hotels/x',
  search: '?y=1',
  host: 'api.example.com',
  client: '203.0.113.7',
  headers: {},
};

const describing =
  (...groups: LabelGroup[]) =>
  (headers: RequestAttributes['headers'] = {}) =>
    createDescriptors(groups, 'hotel:8080')({ ...attributes, headers });

describe('labels to descriptors', () => {
  it('makes one descriptor for each group, in their order', () => {
    const describe = describing(group(label('a'), label('b')), group(label('c')));
    assert.deepEqual(describe({ a: '1', b: '2', c: '3' }), [
      {
        entries: [
          { key: 'a', value: '1' },
          { key: 'b', value: '2' },
        ],
      },
      { entries: [{ key: 'c', value: '3' }] },
    ]);
  });

  it('takes the key from the name of the label and the value from its header', () => {
    const describe = describing(group(label('user', { header: 'x-travel-user' })));
    assert.deepEqual(describe({ 'x-travel-user': 'demo', user: 'forged' }), [
      { entries: [{ key: 'user', value: 'demo' }] },
    ]);
  });

  it('leaves out a label whose header is missing, and a group without labels', () => {
    const describe = describing(group(label('a'), label('b')), group(label('c')));
    assert.deepEqual(describe({ b: '2' }), [{ entries: [{ key: 'b', value: '2' }] }]);
    assert.deepEqual(describe({}), []);
  });

  it('sends the default, or an empty value, for a missing header without omit_if_not_present', () => {
    const describe = describing(
      group(label('a', { omitIfNotPresent: false, default: 'none' }), label('b', { omitIfNotPresent: false })),
    );
    assert.deepEqual(describe({}), [
      {
        entries: [
          { key: 'a', value: 'none' },
          { key: 'b', value: '' },
        ],
      },
    ]);
  });

  it('keeps a header that is present but empty', () => {
    assert.deepEqual(describing(group(label('a')))({ a: '' }), [{ entries: [{ key: 'a', value: '' }] }]);
  });

  it('joins a header that came several times', () => {
    assert.deepEqual(describing(group(label('set-cookie')))({ 'set-cookie': ['a', 'b'] }), [
      { entries: [{ key: 'set-cookie', value: 'a, b' }] },
    ]);
  });

  function check(what: string, one: Label, value: string) {
    it(`tells ${what}`, () => {
      assert.deepEqual(describing(group(one))(), [{ entries: [{ key: one.name, value }] }]);
    });
  }

  check('a fixed value', { kind: 'generic_key', name: 'generic_key', value: 'bookings' }, 'bookings');
  check('the address of the client', { kind: 'remote_address', name: 'remote_address' }, '203.0.113.7');
  check('who sends the request on', { kind: 'source_cluster', name: 'source_cluster' }, 'frontdesk');
  check('the service of the mapping', { kind: 'destination_cluster', name: 'to' }, 'hotel:8080');
  check('the method', { kind: 'method', name: 'method' }, 'POST');
  check(
    'the path, without the query that would make each request another',
    { kind: 'path', name: 'at' },
    attributes.path,
  );
  check('the pseudo-header :method', label('m', { header: ':method' }), 'POST');
  it('writes paths in lower case where the mapping ignores case, so that all spellings share a counter', () => {
    const groups = [group({ kind: 'path', name: 'at' }, label('p', { header: ':path' }))];
    const path = '/V1/hOtels/x';
    const values = (folds: boolean) =>
      createDescriptors(
        groups,
        'hotel',
        folds,
      )({ ...attributes, path }).flatMap(({ entries }) => entries.map(({ value }) => value));
    assert.deepEqual(values(true), ['/v1/hotels/x', '/v1/hotels/x']);
    assert.deepEqual(values(false), [path, path]);
  });

  check('the pseudo-header :path, without the query too', label('p', { header: ':path' }), attributes.path);
  check('the pseudo-header :authority, as rules read hosts', label('a', { header: ':authority' }), 'api.example.com');

  it('bounds a value, and keeps long ones distinct', () => {
    const describe = describing(group(label('token')));
    const told = (token: string) => describe({ token })[0]?.entries[0]?.value ?? '';
    const long = 'x'.repeat(10_000);
    assert.equal(told(long.slice(0, 512)), long.slice(0, 512));
    assert.ok(told(long).length <= 512);
    assert.notEqual(told(`${long}a`), told(`${long}b`));
    assert.equal(told(`${long}a`), told(`${long}a`));
  });

  it('never sends a group without an entry, or a value longer than 512 characters', () => {
    const names = fc.constantFrom('a', 'b', 'c');
    const labels = fc.array(
      fc.record({ name: names, omitIfNotPresent: fc.boolean() }).map(({ name, ...fields }) => label(name, fields)),
      { minLength: 1, maxLength: 3 },
    );
    const headers = fc.dictionary(names, fc.string({ maxLength: 2000 }));
    fc.assert(
      fc.property(fc.array(labels, { maxLength: 3 }), headers, (groups, told) => {
        const descriptors = describing(...groups.map((one) => group(...one)))(told);
        assert.ok(descriptors.length <= groups.length);
        assert.ok(descriptors.every(({ entries }) => entries.length > 0));
        assert.ok(descriptors.every(({ entries }) => entries.every(({ value }) => value.length <= 512)));
      }),
    );
  });
});
