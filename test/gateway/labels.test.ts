/** From a request's headers to what the rate-limit service is told. */
import assert from 'node:assert/strict';
import type { Label } from '#config';
import { createDescribe } from '../../src/gateway/labels.ts';

const label = (name: string, fields: Partial<Label> = {}): Label => ({
  name,
  header: name,
  omitIfNotPresent: true,
  default: '',
  ...fields,
});

const group = (...labels: Label[]) => ({ name: 'group', labels });

describe('labels to descriptors', () => {
  it('makes one descriptor for each group, in their order', () => {
    const describe = createDescribe([group(label('a'), label('b')), group(label('c'))]);
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

  it('calls the label by its name and takes the value from its header', () => {
    const describe = createDescribe([group(label('user', { header: 'x-travel-user' }))]);
    assert.deepEqual(describe({ 'x-travel-user': 'demo', user: 'forged' }), [
      { entries: [{ key: 'user', value: 'demo' }] },
    ]);
  });

  it('leaves out a label whose header is missing, and a group that is left with none', () => {
    const describe = createDescribe([group(label('a'), label('b')), group(label('c'))]);
    assert.deepEqual(describe({ b: '2' }), [{ entries: [{ key: 'b', value: '2' }] }]);
    assert.deepEqual(describe({}), []);
  });

  it('sends the default, or nothing, for a missing header that is not to be omitted', () => {
    const describe = createDescribe([
      group(label('a', { omitIfNotPresent: false, default: 'none' }), label('b', { omitIfNotPresent: false })),
    ]);
    assert.deepEqual(describe({}), [
      {
        entries: [
          { key: 'a', value: 'none' },
          { key: 'b', value: '' },
        ],
      },
    ]);
  });

  it('counts a header that is present but empty', () => {
    assert.deepEqual(createDescribe([group(label('a'))])({ a: '' }), [{ entries: [{ key: 'a', value: '' }] }]);
  });

  it('joins a header that came several times', () => {
    assert.deepEqual(createDescribe([group(label('set-cookie'))])({ 'set-cookie': ['a', 'b'] }), [
      { entries: [{ key: 'set-cookie', value: 'a, b' }] },
    ]);
  });
});
