/** Who the caller is, is the auth service's word alone. */
import assert from 'node:assert/strict';
import { createIdentity } from '../../src/gateway/identity.ts';

const identity = createIdentity(['x-travel-user', 'x-travel-role']);

describe('identity headers', () => {
  it('takes what the client sent under their names, and nothing else', () => {
    const headers = { 'x-travel-user': 'admin', 'x-travel-role': 'root', 'x-travel-users': 'kept', accept: '*/*' };
    identity.strip(headers);
    assert.deepEqual(headers, { 'x-travel-users': 'kept', accept: '*/*' });
  });

  it('copies only what is listed from the auth service', () => {
    const headers = { accept: '*/*' };
    identity.set(headers, { 'x-travel-user': 'demo', accept: 'text/html', 'set-cookie': 'a=1' });
    assert.deepEqual(headers, { accept: '*/*', 'x-travel-user': 'demo' });
  });

  it('calls the first of them the user', () => {
    assert.equal(identity.userOf({ 'x-travel-role': 'clerk', 'x-travel-user': 'demo' }), 'demo');
    assert.equal(identity.userOf({ 'x-travel-role': 'clerk' }), undefined);
    assert.equal(createIdentity([]).userOf({ 'x-travel-user': 'demo' }), undefined);
  });

  it('knows its names', () => {
    assert.ok(identity.has('x-travel-role'));
    assert.ok(!identity.has('x_travel_role'));
  });

  it('knows what a service may take for one of them', () => {
    assert.ok(identity.isReadAs('x-travel-role'));
    assert.ok(createIdentity(['x_travel-user']).isReadAs('x-travel-user'));
    assert.ok(!identity.isReadAs('x-travel-users'));
  });
});
