/** Tests the records of tokens: which providers are right, how they belong to AuthServices and Mappings, and each error. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';
import { authRecord, mappingRecord } from '../../support/desks.ts';
import { createKey, providerRecord } from '../../support/tokens.ts';
import { untyped } from '../../support/untyped.ts';

const key = createKey('EdDSA', 'ed');
const provider = providerRecord([key]);
const uri = 'https://accounts.example.com/keys';

function errorsOf(...records: readonly object[]): readonly string[] {
  const { configuration, errors } = configurationFrom(untyped({ records }));
  assert.equal(configuration.authServices.length > 0 && errors.length > 0, false);
  return errors.map(({ source, record, message, remedy }) => `${source.line} ${record}: ${message}. ${remedy}`);
}

const withJwks = (jwks: unknown) => ({ ...provider, jwks });
const withUri = (jwks_uri: string) => ({ ...provider, jwks: undefined, jwks_uri });

describe('a JwtProvider', () => {
  it('has defaults, of which the header Authorization is one', () => {
    const { configuration, errors } = configurationFrom({ records: [withUri(uri) as typeof provider] });
    assert.deepEqual(errors, []);
    const [record] = configuration.jwtProviders;
    assert.deepEqual(record?.fromHeaders, [{ name: 'authorization', prefix: undefined }]);
    assert.deepEqual([record?.clockSkewMs, record?.cacheDurationMs, record?.userClaim], [60_000, 600_000, 'sub']);
  });

  function rejects(what: string, record: object, expected: RegExp): void {
    it(`cannot ${what}`, () => {
      const [error, ...more] = errorsOf(record);
      assert.match(error ?? '', expected);
      assert.deepEqual(more, []);
    });
  }

  const none = { ...provider, jwks: undefined };
  rejects(
    'be without keys',
    none,
    /^1 JwtProvider accounts: jwks_uri is missing, and so is jwks\. Set jwks_uri: the issuer/,
  );
  rejects('have keys in two places', { ...provider, jwks_uri: uri }, /jwks_uri cannot be combined with jwks/);
  rejects('be without audiences', { ...provider, audiences: undefined }, /audiences is missing/);
  rejects('have an unknown field', { ...provider, audience: [] }, /unknown key "audience", did you mean "audiences"\?/);
  rejects('read keys without TLS', withUri('http://accounts.example.com/keys'), /without TLS, so that others could/);
  rejects(
    'have credentials in the URL',
    withUri('https://a:b@accounts.example.com/keys'),
    /jwks_uri contains credentials/,
  );
  rejects('have another scheme in the URL', withUri('file:///etc/keys'), /jwks_uri is not an http or https URL/);
  rejects(
    'accept shared secrets',
    { ...provider, algorithms: ['HS256'] },
    /algorithms\[0\] "HS256" needs a shared secret/,
  );
  rejects('accept no signature', { ...provider, algorithms: ['none'] }, /accepts tokens without a signature/);
  rejects('have no algorithms', { ...provider, algorithms: [] }, /algorithms is empty/);
  rejects(
    'allow any clock skew',
    { ...provider, clock_skew: '1h' },
    /clock_skew "1h" is not a duration from 0s to 10m/,
  );
  rejects(
    'have a clock skew without a unit',
    { ...provider, clock_skew: 30 },
    /clock_skew has no unit\. Write 30ms, 30s/,
  );
  rejects('read keys all the time', { ...provider, cache_duration: '1s' }, /not a duration from 30s to 24h/);
  rejects('have an empty key set', withJwks({ keys: [] }), /jwks\.keys must have at least 1 item/);
  rejects(
    'have a private key',
    withJwks({ keys: [{ ...key.privateKey.export({ format: 'jwk' }) }] }),
    /contains a private/,
  );
  rejects(
    'have a key that is none',
    withJwks({ keys: [{ kty: 'EC', crv: 'P-256', x: 'a', y: 'b' }] }),
    /is not a public key/,
  );
  rejects(
    'read passwords',
    { ...provider, from_headers: [{ name: 'Authorization', prefix: 'Basic' }] },
    /read passwords/,
  );
  rejects('read all cookies', { ...provider, from_headers: [{ name: 'Cookie' }] }, /Name the cookie in from_cookies/);
  rejects('read nothing', { ...provider, from_headers: [] }, /from_params is empty, and so are from_headers/);
  rejects(
    'set a header that frames the request',
    { ...provider, claim_to_headers: [{ claim: 'x', header: 'Content-Length' }] },
    /"content-length" frames the request/,
  );
  rejects(
    'set a header twice',
    { ...provider, claim_to_headers: ['a', 'b'].map((claim) => ({ claim, header: 'X-A' })) },
    /claim_to_headers sets "x-a" twice/,
  );

  for (const allowed of [
    'http://localhost:8080/keys',
    'http://10.1.2.3/keys',
    'http://keycloak/keys',
    'http://k.auth.svc/keys',
  ])
    it(`may read keys from ${allowed}`, () => assert.deepEqual(errorsOf(withUri(allowed)), []));

  it('never shows the query of its URL, which may be a secret', () => {
    const [error = ''] = errorsOf(withUri('http://accounts.example.com/keys?token=secret'));
    assert.doesNotMatch(error, /secret/);
  });
});

describe('an AuthService with providers', () => {
  const auth = { ...authRecord, providers: ['accounts'] };
  const other = { ...provider, name: 'other', issuer: 'https://other.example.com' };

  it('may list up to four with different issuers', () => {
    const four = ['a', 'b', 'c', 'd'].map((name) => ({ ...provider, name, issuer: name }));
    assert.deepEqual(errorsOf({ ...auth, providers: 'a, b, c, d' }, ...four), []);
    assert.match(
      errorsOf({ ...auth, providers: [...'abcde'] })[0] ?? '',
      /lists 5 providers, and at most 4 are supported/,
    );
  });

  function rejects(what: string, records: readonly object[], expected: RegExp): void {
    it(`cannot ${what}`, () => assert.match(errorsOf(...records)[0] ?? '', expected));
  }

  rejects(
    'list one that does not exist',
    [{ ...auth, providers: ['acounts'] }, provider, other],
    /^1 AuthService auth: there is no JwtProvider "acounts", did you mean "accounts"\?\. Add a JwtProvider with this name, or use one of accounts, other\.$/,
  );
  rejects('list one twice', [{ ...auth, providers: ['accounts', 'accounts'] }, provider], /lists "accounts" twice/);
  rejects(
    'list two with the same issuer',
    [{ ...auth, providers: ['accounts', 'other'] }, provider, { ...other, issuer: provider.issuer }],
    /providers lists accounts and other, which have the same issuer/,
  );
  rejects(
    'be a service over HTTP',
    [{ ...auth, auth_service: 'http://auth.example.com' }, provider],
    /providers has no effect, because only frontdesk's own auth service checks tokens\. Write auth_service: auth/,
  );
  rejects(
    'name the user in the header of another claim',
    [auth, { ...provider, claim_to_headers: [{ claim: 'email', header: 'X-Travel-User' }] }],
    /claim_to_headers sets "x-travel-user", in which AuthService auth names the user\. Write user_claim: email/,
  );
  rejects(
    'read tokens from a header that it removes',
    [auth, { ...provider, from_headers: [{ name: 'X-Travel-User' }] }],
    /from_headers reads "x-travel-user", which is removed from clients' requests/,
  );
  rejects(
    'let a mapping set the header of a claim',
    [
      auth,
      { ...provider, claim_to_headers: [{ claim: 'email', header: 'X-Email' }] },
      mappingRecord('app', '/', 'app', { add_request_headers: { 'X-Email': 'a' } }),
    ],
    /add_request_headers sets "x-email", which only JwtProvider accounts can set/,
  );
});

describe('a Mapping with require_claims', () => {
  const auth = { ...authRecord, providers: ['accounts'] };
  const requiring = (more: object = {}) => ({
    ...mappingRecord('app', '/', 'app'),
    require_claims: { scope: 'a' },
    ...more,
  });

  it('accepts text, numbers, flags and lists of them', () => {
    const require_claims = { scope: ['a', 'b'], level: 3, 'realm.staff': true };
    const { configuration } = configurationFrom(untyped({ records: [auth, provider, requiring({ require_claims })] }));
    assert.deepEqual(configuration.mappings[0]?.requireClaims, [
      { claim: 'scope', values: ['a', 'b'] },
      { claim: 'level', values: [3] },
      { claim: 'realm.staff', values: [true] },
    ]);
  });

  function rejects(what: string, records: readonly object[], expected: RegExp): void {
    it(`cannot ${what}`, () => assert.match(errorsOf(...records).join('\n'), expected));
  }

  rejects(
    'be without an AuthService',
    [requiring()],
    /require_claims needs an AuthService that checks tokens, and there is none/,
  );
  rejects(
    'use an AuthService without providers',
    [authRecord, requiring()],
    /require_claims needs tokens, and AuthService auth accepts none/,
  );
  rejects(
    'bypass authentication',
    [auth, provider, requiring({ bypass_auth: true })],
    /no effect with bypass_auth: true/,
  );
  rejects(
    'be a redirect',
    [auth, provider, requiring({ path_redirect: '/b' })],
    /require_claims has no effect with path_redirect/,
  );
  rejects('require nothing', [auth, provider, requiring({ require_claims: {} })], /require_claims is empty/);
  rejects(
    'require nothing of a claim',
    [auth, provider, requiring({ require_claims: { scope: [] } })],
    /scope is empty/,
  );
  rejects(
    'require a map',
    [auth, provider, requiring({ require_claims: { scope: { a: 1 } } })],
    /must be a number, true, false, or text/,
  );
  rejects(
    'share requests with one that requires others',
    [
      auth,
      provider,
      requiring({ weight: 50 }),
      requiring({ name: 'other', weight: 50, require_claims: { scope: 'b' } }),
    ],
    /does not have the same require_claims as Mapping app/,
  );
});
