/** Where requests go, for people. */
import assert from 'node:assert/strict';
import { describeTarget } from '#gateway';

describe('a target', () => {
  it('reads as an address, or as this process', () => {
    assert.equal(describeTarget({ kind: 'local', name: 'hotel' }), 'in this process');
    const origin = () => 'http://hotel:80';
    assert.equal(describeTarget({ kind: 'remote', origin, path: '' }), 'http://hotel:80');
    assert.equal(describeTarget({ kind: 'remote', origin, path: '/base' }), 'http://hotel:80/base');
  });
});
