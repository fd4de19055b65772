/** Where requests go, for people. */
import assert from 'node:assert/strict';
import { describeTarget } from '#gateway';

describe('a target', () => {
  it('reads as an address, or as this process', () => {
    assert.equal(describeTarget({ kind: 'local', name: 'hotel' }), 'in this process');
    const origins = () => ['http://hotel:80'];
    assert.equal(describeTarget({ kind: 'remote', origins, path: '' }), 'http://hotel:80');
    assert.equal(describeTarget({ kind: 'remote', origins, path: '/base' }), 'http://hotel:80/base');
  });

  it('names each of several addresses', () => {
    const origins = () => ['http://a:1', 'http://b:2'];
    assert.equal(describeTarget({ kind: 'remote', origins, path: '/base' }), 'http://a:1/base, http://b:2/base');
  });
});
