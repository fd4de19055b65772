/** Which tokens are valid: signatures, keys, claims, and what is remembered of them. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { mock } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTokenProviders } from '#auth';
import { configurationFrom } from '#config';
import type { JwtProviderInput } from '../../src/index.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import {
  audience,
  claimsOf,
  createKey,
  encode,
  providerRecord,
  signToken,
  signWithSecret,
  startKeyServer,
  unsigned,
} from '../support/tokens.ts';
import { makeCertificate } from '../support/wire/certificate.ts';

const rsa = createKey('RS256', 'rsa');
const pss = createKey('PS256', 'pss');
const ec = createKey('ES256', 'ec');
const ed = createKey('EdDSA', 'ed');
const second = 1000;

describe('the tokens of a JwtProvider', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let nowMs = Date.now();
  beforeEach(() => {
    nowMs = Date.now();
  });

  async function setUp(...records: readonly JwtProviderInput[]) {
    const log: LogLine[] = [];
    const providers = createTokenProviders({ logger: recordingLogger(log), clock: () => nowMs });
    servers.later(providers.close);
    const read = (some: readonly JwtProviderInput[]) => {
      const { configuration, errors } = configurationFrom({ records: some });
      assert.deepEqual(errors, []);
      return configuration.jwtProviders;
    };
    const open = async (some: readonly JwtProviderInput[]) => {
      const opened = await providers.open(read(some));
      const verifier = opened.verifierOf(some.map(({ name }) => name));
      const ask = (headers: Readonly<Record<string, string>>, url = '/') => verifier?.verdictOf({ headers, url });
      return { ...opened, ask, check: (token: string) => ask({ authorization: `Bearer ${token}` }) };
    };
    return { ...(await open(records)), open, log, providers };
  }

  const claims = (more: Readonly<Record<string, unknown>> = {}) => claimsOf(more, nowMs);
  const inSeconds = (seconds: number) => Math.floor(nowMs / second) + seconds;
  const without = (name: string) => claims({ [name]: undefined });

  /** `expected`: the user, `refused`, or `expired`. */
  function check(what: string, tokenOf: () => string, expected: string, record: Partial<JwtProviderInput> = {}) {
    it(`${expected === 'ann' ? 'accepts' : 'rejects'} ${what}`, async () => {
      const { check } = await setUp(providerRecord([rsa, pss, ec, ed], record));
      const verdict = await check(tokenOf());
      const found = verdict?.kind === 'token-refused' ? (verdict.isExpired ? 'expired' : 'refused') : undefined;
      assert.equal(verdict?.kind === 'token-user' ? verdict.name : found, expected);
    });
  }

  for (const key of [rsa, pss, ec, ed]) check(`a token with ${key.alg}`, () => signToken(key, claims()), 'ann');

  check('a token without a signature (alg: none)', () => unsigned(claims()), 'refused');
  check('a token without a signature that names a key', () => unsigned(claims(), { kid: 'rsa' }), 'refused');
  check(
    'a token that is signed with the public key as a shared secret',
    () => {
      const pem = rsa.publicKey.export({ format: 'pem', type: 'spki' }).toString();
      return signWithSecret(pem, claims(), { kid: 'rsa' });
    },
    'refused',
  );
  check('an algorithm that the record does not list', () => signToken(pss, claims()), 'refused', {
    algorithms: ['RS256'],
  });
  check('an algorithm that is not the one of the key', () => signToken(rsa, claims(), { alg: 'PS256' }), 'refused');
  check('a key of another type under the same id', () => signToken(ec, claims(), { kid: 'rsa' }), 'refused');
  check('a token of an unknown key', () => signToken(createKey('RS256', 'other'), claims()), 'refused');
  check('a token of another key with a known id', () => signToken(createKey('RS256', 'rsa'), claims()), 'refused');
  check(
    'a token whose claims were changed',
    () => {
      const [header, , signature] = signToken(rsa, claims()).split('.');
      return [header, encode(claims({ sub: 'admin' })), signature].join('.');
    },
    'refused',
  );
  check(
    'a token whose header was changed',
    () => {
      const [, payload, signature] = signToken(rsa, claims()).split('.');
      return [encode({ alg: 'RS256', kid: 'rsa', typ: 'other' }), payload, signature].join('.');
    },
    'refused',
  );
  check('a critical extension', () => signToken(rsa, claims(), { crit: ['exp'], exp: 1 }), 'refused');
  check('an unencoded payload', () => signToken(rsa, claims(), { crit: ['b64'], b64: false }), 'refused');
  check('text that is no token', () => 'not a token', 'refused');
  check('an empty token', () => '', 'refused');
  check('an encrypted token', () => `${signToken(rsa, claims())}.x.y`, 'refused');
  check('a token of more than 8 KiB', () => signToken(rsa, claims({ more: 'x'.repeat(8192) })), 'refused');

  check('another issuer', () => signToken(rsa, claims({ iss: 'https://else.example.com' })), 'refused');
  check('a token without an issuer', () => signToken(rsa, without('iss')), 'refused');
  check('another audience', () => signToken(rsa, claims({ aud: 'https://other.example.com' })), 'refused');
  check('a token without an audience', () => signToken(rsa, without('aud')), 'refused');
  check('one of several audiences', () => signToken(rsa, claims({ aud: ['x', audience] })), 'ann');
  check('any audience if the list is empty', () => signToken(rsa, without('aud')), 'ann', { audiences: [] });

  check('a token that has expired', () => signToken(rsa, claims({ exp: inSeconds(-61) })), 'expired');
  check('a token that has expired within the clock skew', () => signToken(rsa, claims({ exp: inSeconds(-30) })), 'ann');
  check('an end that is no number', () => signToken(rsa, claims({ exp: 'tomorrow' })), 'refused');
  check('a token without an end', () => signToken(rsa, without('exp')), 'refused');
  check('a token without an end, if the record allows it', () => signToken(rsa, without('exp')), 'ann', {
    require_expiration: false,
  });
  check('a token whose time has not come', () => signToken(rsa, claims({ nbf: inSeconds(90) })), 'refused');
  check('a token whose time comes within the clock skew', () => signToken(rsa, claims({ nbf: inSeconds(30) })), 'ann');
  check(
    'it as soon as the record allows no clock skew',
    () => signToken(rsa, claims({ nbf: inSeconds(30) })),
    'refused',
    {
      clock_skew: '0s',
    },
  );

  check('a token without a user', () => signToken(rsa, without('sub')), 'refused');
  check('a user who is no text', () => signToken(rsa, claims({ sub: 7 })), 'refused');
  check('a user with a line break', () => signToken(rsa, claims({ sub: 'ann\r\nX-Role: admin' })), 'refused');
  check('another claim as the user', () => signToken(rsa, claims({ sub: 'x', name: 'ann' })), 'ann', {
    user_claim: 'name',
  });

  it('are verified with every key that fits if they name none', async () => {
    const keys = [createKey('RS256'), createKey('RS256'), createKey('RS256')];
    const { check } = await setUp(providerRecord(keys));
    for (const key of keys) assert.equal((await check(signToken(key, claims())))?.kind, 'token-user');
    assert.equal((await check(signToken(createKey('RS256'), claims())))?.kind, 'token-refused');
  });

  it('choose their provider by issuer, among those that look in the same place', async () => {
    const other = 'https://other.example.com';
    const { ask } = await setUp(
      providerRecord([rsa]),
      providerRecord([ec], { name: 'other', issuer: other, from_headers: [], from_cookies: ['session'] }),
    );
    const [own, others] = [signToken(rsa, claims()), signToken(ec, claims({ iss: other }))];
    assert.equal((await ask({ authorization: `bearer ${own}` }))?.kind, 'token-user');
    assert.equal((await ask({ cookie: `a=b; session=${others}` }))?.kind, 'token-user');
    assert.equal((await ask({ authorization: `Bearer ${others}` }))?.kind, 'token-refused');
    assert.equal((await ask({ cookie: `session=${own}` }))?.kind, 'token-refused');
    assert.equal(await ask({ cookie: `other=${others}` }), undefined);
    // The key of one issuer does not verify the tokens of another.
    const forged = signToken(ec, claims());
    assert.equal((await ask({ authorization: `Bearer ${forged}` }))?.kind, 'token-refused');
  });

  it('are found in the headers, cookies and parameters that the record names, and nowhere else', async () => {
    const places = { from_headers: [{ name: 'X-Token' }, { name: 'X-Old', prefix: 'JWT' }], from_params: ['token'] };
    const { ask } = await setUp(providerRecord([rsa], { ...places, from_cookies: ['session'] }));
    const token = signToken(rsa, claims());
    const kinds = [
      await ask({ 'x-token': token }),
      await ask({ 'x-old': `jwt ${token}` }),
      await ask({ 'x-old': token }),
      await ask({ cookie: `session=${token}` }),
      await ask({}, `/a?b=c&token=${token}`),
      await ask({ authorization: `Bearer ${token}` }),
      await ask({}, `/a?access_token=${token}`),
      await ask({ cookie: `session=${token}`, authorization: 'Basic YTpi' }),
    ].map((verdict) => verdict?.kind);
    const found = 'token-user';
    assert.deepEqual(kinds, [found, found, undefined, found, found, undefined, undefined, undefined]);
  });

  it('become headers by their claims: text, numbers, flags and lists of them', async () => {
    const claim_to_headers = [
      { claim: 'email', header: 'X-Email' },
      { claim: 'level', header: 'X-Level' },
      { claim: 'is_staff', header: 'X-Staff' },
      { claim: 'realm_access.roles', header: 'X-Roles' },
      { claim: 'https://example.com/team', header: 'X-Team' },
      { claim: 'address', header: 'X-Address' },
      { claim: 'missing', header: 'X-Missing' },
      { claim: 'constructor', header: 'X-Constructor' },
    ];
    const { check } = await setUp(providerRecord([rsa], { claim_to_headers }));
    const more = {
      email: 'jörg@example.com',
      level: 3,
      is_staff: true,
      realm_access: { roles: ['reader', 'a,b', '100%'] },
      'https://example.com/team': 'red',
      address: { city: 'Paris' },
    };
    const verdict = await check(signToken(rsa, claims(more)));
    assert.ok(verdict?.kind === 'token-user');
    assert.deepEqual(verdict.headers, {
      'x-email': Buffer.from('jörg@example.com').toString('latin1'),
      'x-level': '3',
      'x-staff': 'true',
      'x-roles': 'reader,a%2Cb,100%25',
      'x-team': 'red',
    });
    assert.equal(verdict.claimOf('realm_access.roles.1'), undefined);
    const breaking = await check(signToken(rsa, claims({ email: 'a\nb' })));
    assert.equal(breaking?.kind, 'token-refused');
  });

  describe('that are remembered', () => {
    it('are verified once, and again 10 minutes later or when they have ended', async () => {
      const { check, providers } = await setUp(providerRecord([rsa]));
      const counts = () => providers.states()[0]?.counts;
      const [long, short] = [signToken(rsa, claims()), signToken(rsa, claims({ exp: inSeconds(10) }))];
      const verdict = await check(long);
      await check(short);
      assert.equal(check(long), verdict);
      assert.deepEqual([counts()?.valid, counts()?.remembered], [2, 1]);
      nowMs += 11 * second;
      assert.ok(check(short) instanceof Promise, 'within the clock skew, but no longer remembered');
      nowMs += 60 * second;
      assert.deepEqual(await check(short), { kind: 'token-refused', isExpired: true });
      assert.equal(check(long), verdict);
      nowMs += 600 * second;
      assert.ok(check(long) instanceof Promise);
    });

    it('are bounded in number', async () => {
      const providers = createTokenProviders({ logger: recordingLogger([]), entriesMax: 2 });
      const { configuration } = configurationFrom({ records: [providerRecord([ed])] });
      const verifier = (await providers.open(configuration.jwtProviders)).verifierOf(['accounts']);
      const ask = (token: string) => verifier?.verdictOf({ headers: { authorization: `Bearer ${token}` }, url: '/' });
      const tokens = ['a', 'b', 'c'].map((jti) => signToken(ed, claims({ jti })));
      for (const token of tokens) await ask(token);
      assert.deepEqual(
        tokens.map((token) => ask(token) instanceof Promise),
        [true, false, false],
      );
    });

    it('are verified again when the record has changed', async () => {
      const record = providerRecord([rsa]);
      const { check, open } = await setUp(record);
      const token = signToken(rsa, claims());
      assert.equal((await check(token))?.kind, 'token-user');
      const changed = await open([{ ...record, audiences: ['https://other.example.com'] }]);
      assert.deepEqual(await changed.check(token), { kind: 'token-refused', isExpired: false });
      const same = await open([record]);
      assert.equal(same.check(token), check(token));
    });
  });

  describe('with keys at a URL', () => {
    let passedMs = 0;
    beforeEach(() => {
      passedMs = 0;
      const { now } = performance;
      mock.method(performance, 'now', () => now.call(performance) + passedMs);
      mock.timers.enable({ apis: ['setTimeout'] });
    });
    afterEach(() => mock.reset());

    function pass(ms: number): void {
      passedMs += ms;
      nowMs += ms;
      mock.timers.tick(ms);
    }

    async function setUpServer(keys: Parameters<typeof startKeyServer>[1], more: Partial<JwtProviderInput> = {}) {
      const server = await startKeyServer(servers, keys);
      const parts = await setUp(providerRecord([], { jwks_uri: server.uri, ...more }));
      const state = () => parts.providers.states()[0]?.keySet;
      const kindOf = async (token: string) => (await parts.check(token))?.kind;
      return { ...parts, server, state, kindOf };
    }

    it('cannot be checked until there are keys, which is no rejection', async () => {
      const { check, server, log, state } = await setUpServer([]);
      server.respond('', 500);
      const verdict = await check(signToken(rsa, claims()));
      const reason = 'the keys of JwtProvider accounts could not be read yet';
      assert.deepEqual(verdict, { kind: 'token-unchecked', reason });
      assert.equal(log[0]?.message, 'the keys of the JwtProvider cannot be read: its tokens get 503');
      assert.doesNotMatch(JSON.stringify([log, state()]), /secret-parameter/);
      // Tried again after 1 s, 2 s, 4 s.
      for (const [attempt, waitMs] of [1000, 2000, 4000].entries()) {
        pass(waitMs - 1);
        assert.equal(server.requests(), attempt + 1);
        pass(1);
        assert.deepEqual(await check(signToken(rsa, claims())), { kind: 'token-unchecked', reason });
        assert.equal(server.requests(), attempt + 2);
      }
      server.serve([rsa]);
      pass(8000);
      assert.equal((await check(signToken(rsa, claims())))?.kind, 'token-user');
      assert.equal(log.at(-1)?.message, 'the keys of the JwtProvider can be read again');
    });

    it('are read again after cache_duration, and a remembered token is rejected once its key has left the set', async () => {
      const { check, server, kindOf, state } = await setUpServer([rsa, ed], { cache_duration: '1m' });
      const token = signToken(rsa, claims());
      const verdict = await check(token);
      assert.equal(verdict?.kind, 'token-user');
      server.serve([ed]);
      pass(59_000);
      assert.equal(check(token), verdict, 'it is remembered');
      assert.equal(server.requests(), 1);
      pass(1000);
      while (state()?.keys !== 1) await nextTurn();
      assert.equal(await kindOf(token), 'token-refused');
      assert.equal(server.requests(), 2);
    });

    it('keep the last keys during an outage, and say so', async () => {
      const { server, kindOf, state, log } = await setUpServer([rsa]);
      assert.equal(await kindOf(signToken(rsa, claims())), 'token-user');
      server.breakOff();
      pass(600_000);
      while (state()?.failures !== 1) await nextTurn();
      assert.equal(await kindOf(signToken(rsa, claims({ jti: 'new' }))), 'token-user');
      assert.equal(log.at(-1)?.message, 'the keys of the JwtProvider cannot be read: the last ones stay in use');
      assert.equal(typeof state()?.lastError?.message, 'string');
      server.serve([rsa]);
      pass(30_000);
      while (state()?.lastError !== undefined) await nextTurn();
      assert.equal(server.requests(), 3);
    });

    it('are read for unknown keys, at most once in 30 s, however many tokens arrive', async () => {
      const { server, kindOf } = await setUpServer([rsa]);
      const next = createKey('ES256', 'next');
      assert.equal(await kindOf(signToken(rsa, claims())), 'token-user');
      const unknown = Array.from({ length: 50 }, (_, index) => signToken(next, claims({ index })));
      await Promise.all(unknown.map(kindOf));
      assert.equal(server.requests(), 1, 'the keys have just been read');
      server.serve([rsa, next]);
      pass(30_000);
      const kinds = await Promise.all(unknown.map(kindOf));
      assert.deepEqual([new Set(kinds), server.requests()], [new Set(['token-user']), 2]);
      const forged = Array.from({ length: 50 }, (_, kid) => signToken(next, claims(), { kid: String(kid) }));
      assert.deepEqual(new Set(await Promise.all(forged.map(kindOf))), new Set(['token-refused']));
      assert.equal(server.requests(), 2);
    });

    it('are not read again when a change leaves the record as it was', async () => {
      const { server, kindOf, open, close } = await setUpServer([rsa]);
      assert.equal(await kindOf(signToken(rsa, claims())), 'token-user');
      const next = await open([providerRecord([], { jwks_uri: server.uri })]);
      close();
      assert.equal((await next.check(signToken(rsa, claims({ jti: 'new' }))))?.kind, 'token-user');
      assert.equal(server.requests(), 1);
      next.close();
      pass(600_000);
      await nextTurn();
      assert.equal(server.requests(), 1, 'nothing is read for a provider that no one uses');
    });

    for (const [what, body, reason, status = 200, headers = {}] of [
      ['has another status', '{"keys":[]}', /status 404, not 200/, 404],
      ['is a redirect', '', /status 302, not 200/, 302, { Location: '/elsewhere' }],
      ['is no JSON', '<html>', /is not JSON/],
      ['is no key set', '{"keys":{}}', /has no list "keys"/],
      ['is larger than 64 KiB', ' '.repeat(65_537), /more than 65536 bytes/],
      ['has more than 100 keys', JSON.stringify({ keys: Array(101).fill({}) }), /101 keys, and at most 100/],
    ] as const)
      it(`refuse a response that ${what}`, async () => {
        const server = await startKeyServer(servers);
        server.respond(body, status, headers);
        const { check, providers } = await setUp(providerRecord([], { jwks_uri: server.uri }));
        assert.equal((await check(signToken(rsa, claims())))?.kind, 'token-unchecked');
        assert.match(providers.states()[0]?.keySet.lastError?.message ?? '', reason);
      });

    it('refuse a server whose certificate is not trusted', async function () {
      const certificate = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
      if (certificate === undefined) return this.skip();
      const { port } = await servers.listen(createServer(certificate, (_request, response) => void response.end()));
      const { check, providers } = await setUp(providerRecord([], { jwks_uri: `https://127.0.0.1:${port}/keys` }));
      assert.equal((await check(signToken(rsa, claims())))?.kind, 'token-unchecked');
      assert.match(providers.states()[0]?.keySet.lastError?.message ?? '', /self-signed certificate/);
    });

    it('ignore keys that are not for signatures, that are too short, or that are secret', async () => {
      const server = await startKeyServer(servers);
      const encryption = createKey('RS256', 'encryption');
      const secret = { kty: 'oct', k: encode('secret'), kid: 'secret' };
      const keys = [
        rsa.jwk,
        { ...encryption.jwk, use: 'enc' },
        secret,
        { kty: 'RSA', n: 'AQAB', e: 'AQAB' },
        { kty: 'x' },
      ];
      server.respond(JSON.stringify({ keys }));
      const { check, providers } = await setUp(providerRecord([], { jwks_uri: server.uri }));
      assert.equal((await check(signToken(rsa, claims())))?.kind, 'token-user');
      assert.equal((await check(signToken(encryption, claims())))?.kind, 'token-refused');
      const forged = signWithSecret('secret', claims(), { kid: 'secret' });
      assert.equal((await check(forged))?.kind, 'token-refused');
      assert.equal(providers.states()[0]?.keySet.keys, 1);
    });
  });
});
