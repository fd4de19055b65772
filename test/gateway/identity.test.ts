/** Identity headers are set by auth services alone. */
import assert from 'node:assert/strict';
import { createIdentity } from '../../src/gateway/identity.ts';

const identity = createIdentity(['x-travel-user', 'x-travel-role']);

describe('identity headers', () => {
  it("are stripped from the client's request, and no other header is", () => {
    const headers = { 'x-travel-user': 'admin', 'x-travel-role': 'root', 'x-travel-users': 'kept', accept: '*/*' };
    identity.strip(headers);
    assert.deepEqual(headers, { 'x-travel-users': 'kept', accept: '*/*' });
  });

  it("are copied from the auth service's answer, and no other header is", () => {
    const headers = { accept: '*/*' };
    identity.set(headers, { 'x-travel-user': 'demo', accept: 'text/html', 'set-cookie': 'a=1' });
    assert.deepEqual(headers, { accept: '*/*', 'x-travel-user': 'demo' });
  });

  it('name the user in the first of them', () => {
    assert.equal(identity.userOf({ 'x-travel-role': 'clerk', 'x-travel-user': 'demo' }), 'demo');
    assert.equal(identity.userOf({ 'x-travel-role': 'clerk' }), undefined);
    assert.equal(createIdentity([]).userOf({ 'x-travel-user': 'demo' }), undefined);
  });

  it('are known by name', () => {
    assert.ok(identity.has('x-travel-role'));
    assert.ok(!identity.has('x_travel_role'));
  });

  it('are known in spellings that CGI cannot tell apart', () => {
    assert.ok(identity.isReadAs('x-travel-role'));
    assert.ok(createIdentity(['x_travel-user']).isReadAs('x-travel-user'));
    assert.ok(!identity.isReadAs('x-travel-users'));
  });
});
