/** API keys in the auth service and the authenticator, without a gateway. */
import assert from 'node:assert/strict';
import supertest from 'supertest';
import {
  createApiKey,
  createAuthenticator,
  createAuthService,
  createLoginCounts,
  createUsers,
  type LoginOutcome,
} from '#auth';

const { key, sha256 } = createApiKey();
const users = createUsers([{ name: 'bot', roles: ['admin'], apiKeys: [{ name: 'ci', sha256 }] }]);
const right = { kind: 'user', name: 'bot', isAdmin: true, key: 'ci' };
const invalid = { kind: 'invalid' };
const from = (network: string) => () => ({ network, isShared: false });

describe('createApiKey', () => {
  it('returns a key of 256 random bits with a prefix, and its digest', () => {
    assert.match(key, /^fd_[\w-]{43}$/);
    assert.match(sha256, /^[0-9a-f]{64}$/);
    assert.deepEqual(
      createApiKey(() => new Uint8Array(32)),
      {
        key: `fd_${'A'.repeat(43)}`,
        sha256: '377f96c84116ca0b0ee248ef8122711c81cb7afe7cf1efe1033cb2cef9a4e6b5',
      },
    );
  });
});

describe('an auth service with keyHeader', () => {
  const service = (keyHeader?: string) => {
    const options = { authenticator: createAuthenticator({ users }), ...(keyHeader !== undefined && { keyHeader }) };
    return createAuthService(options);
  };
  const check = (keyHeader?: string, name = 'x-token') =>
    service(keyHeader).check({ method: 'GET', url: '/', headers: { [name]: key } });

  it('names the user and the key for a gateway in this process', () => {
    const headers = { 'x-travel-user': 'bot', 'x-api-key-name': 'ci' };
    assert.deepEqual(check('X-Token'), { outcome: 'allow', headers, isAdmin: true });
  });

  it('names them for other proxies, and rejects a wrong key with a challenge for passwords', async () => {
    const { app } = service('X-Token');
    const get = (sent: string) => supertest(app.callback()).get('/').set('X-Token', sent);
    await get(key).expect(200, '').expect('X-Travel-User', 'bot').expect('X-Api-Key-Name', 'ci');
    await get('guess').expect(401).expect('WWW-Authenticate', 'Basic realm="api", charset="UTF-8"');
  });

  it('accepts keys in no other header, and none without the option', () => {
    for (const decision of [check('X-Token', 'x-api-key'), check(undefined, 'x-api-key')])
      assert.equal(!(decision instanceof Promise) && decision.outcome, 'deny');
  });

  it('needs an authenticator that checks keys', () => {
    const authenticator = { verdictOf: () => ({ kind: 'missing' }) as const };
    assert.throws(() => createAuthService({ authenticator, keyHeader: 'X-Token' }), /no function `verdictOfKey`/);
    assert.throws(() => service('X Token'), TypeError);
  });
});

describe('an authenticator with API keys', () => {
  it('rejects a key as soon as a reload removes it, and accepts a new one', () => {
    const authenticator = createAuthenticator({ users });
    assert.deepEqual(authenticator.verdictOfKey(key), right);
    const next = createApiKey();
    authenticator.reload(createUsers([{ name: 'bot', apiKeys: [{ name: 'new', sha256: next.sha256 }] }]));
    assert.deepEqual(authenticator.verdictOfKey(key), invalid);
    assert.deepEqual(authenticator.verdictOfKey(next.key), { kind: 'user', name: 'bot', isAdmin: false, key: 'new' });
  });

  it('counts a right key once, a wrong one each time, and an impossible one never', () => {
    const counts = createLoginCounts();
    const authenticator = createAuthenticator({ users, counts });
    for (const sent of [key, key, 'guess', 'guess', '', 'k'.repeat(513)]) authenticator.verdictOfKey(sent);
    assert.deepEqual(counts, { right: 1, wrong: 2, throttled: 0, busy: 0 });
  });

  it('throttles the guesses of a network that other threads have seen', () => {
    const outcomes: LoginOutcome[] = [];
    const first = createAuthenticator({ users, onOutcome: (outcome) => outcomes.push(outcome) });
    const second = createAuthenticator({ users });
    for (let guess = 0; guess < 31; guess += 1) first.verdictOfKey(`guess ${guess}`, from('192.0.2.1'));
    for (const outcome of structuredClone(outcomes)) second.learn(outcome);
    assert.equal(second.verdictOfKey('another guess', from('192.0.2.1')).kind, 'throttled');
    assert.equal(second.verdictOfKey('another guess', from('192.0.2.2')).kind, 'invalid');
    assert.ok(!JSON.stringify(outcomes).includes('guess'));
  });

  it('throttles guesses in explanations apart from logins, and counts none', () => {
    const counts = createLoginCounts();
    const authenticator = createAuthenticator({ users, counts });
    const sender = from('192.0.2.1');
    for (let guess = 0; guess < 31; guess += 1)
      assert.deepEqual(authenticator.rehearseKey(`guess ${guess}`, sender), invalid);
    assert.equal(authenticator.rehearseKey('another guess', sender).kind, 'throttled');
    assert.deepEqual(authenticator.verdictOfKey(key, sender), right);
    assert.deepEqual(authenticator.rehearseKey(key, sender), right);
    assert.deepEqual(counts, { right: 1, wrong: 0, throttled: 0, busy: 0 });
  });
});
