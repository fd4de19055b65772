/** Gateway records as people write them, and what they become; what is refused is in the golden files. */
import assert from 'node:assert/strict';
import { configurationFrom } from '#config';

function read(...records: readonly unknown[]) {
  const { configuration, errors } = configurationFrom({ records });
  assert.deepEqual(errors, []);
  return configuration;
}

const head = { apiVersion: 'gateway/v1', name: 'one' };
const source = { file: '<options>', line: 1 };

describe('a Mapping', () => {
  const mapping = { ...head, kind: 'Mapping', prefix: '/v1/hotels', service: 'hotel' };

  it('has these defaults', () => {
    assert.deepEqual(read(mapping).mappings, [
      {
        kind: 'Mapping',
        name: 'one',
        prefix: '/v1/hotels',
        rewrite: '/',
        service: 'hotel',
        labels: {},
        timeoutMs: undefined,
        connectTimeoutMs: undefined,
        bypassAuth: false,
        source,
      },
    ]);
  });

  it('keeps every field that is given', () => {
    const [given] = read({
      ...mapping,
      rewrite: '',
      service: 'https://hotel.example:8443',
      timeout_ms: 1500,
      connect_timeout_ms: 250,
      bypass_auth: true,
    }).mappings;
    assert.deepEqual(
      [given?.rewrite, given?.service, given?.timeoutMs, given?.connectTimeoutMs, given?.bypassAuth],
      ['', 'https://hotel.example:8443', 1500, 250, true],
    );
  });

  it('has its prefix and rewrite without the slash at the end, but for / itself', () => {
    const prefixes = ['/v1/hotels/', '/v1/hotels', '/'].map(
      (prefix) => read({ ...mapping, prefix }).mappings[0]?.prefix,
    );
    assert.deepEqual(prefixes, ['/v1/hotels', '/v1/hotels', '/']);
    assert.equal(read({ ...mapping, rewrite: '/inn/' }).mappings[0]?.rewrite, '/inn');
  });

  it('has labels by domain, in the order given, with header names in lower case', () => {
    const labels = {
      gateway: [
        {
          user: [
            { 'x-travel-user': { header: 'X-Travel-User', omit_if_not_present: true } },
            { 'x-plan': { header: 'X-Plan', default: 'free' } },
          ],
        },
        { test_allow: [{ 'x-allow': { header: 'x-allow' } }] },
      ],
      other: [],
    };
    assert.deepEqual(read({ ...mapping, labels }).mappings[0]?.labels, {
      gateway: [
        {
          name: 'user',
          labels: [
            { name: 'x-travel-user', header: 'x-travel-user', omitIfNotPresent: true, default: '' },
            { name: 'x-plan', header: 'x-plan', omitIfNotPresent: false, default: 'free' },
          ],
        },
        { name: 'test_allow', labels: [{ name: 'x-allow', header: 'x-allow', omitIfNotPresent: false, default: '' }] },
      ],
      other: [],
    });
  });

  it('may have a label that is named header', () => {
    const labels = { gateway: [{ group: [{ header: { header: 'X-A' } }] }] };
    assert.equal(read({ ...mapping, labels }).mappings[0]?.labels['gateway']?.[0]?.labels[0]?.name, 'header');
  });
});

describe('an AuthService', () => {
  const auth = { ...head, kind: 'AuthService', auth_service: 'auth' };

  it('has these defaults: it fails closed', () => {
    assert.deepEqual(read(auth).authServices, [
      {
        kind: 'AuthService',
        name: 'one',
        authService: 'auth',
        proto: 'http',
        allowedAuthorizationHeaders: [],
        timeoutMs: 5000,
        statusOnError: 503,
        failureModeAllow: false,
        source,
      },
    ]);
  });

  it('keeps every field that is given, with header names in lower case', () => {
    const [given] = read({
      ...auth,
      proto: 'http',
      allowed_authorization_headers: ['X-Travel-User', 'x-plan'],
      timeout_ms: 200,
      status_on_error: { code: 403 },
      failure_mode_allow: true,
    }).authServices;
    assert.deepEqual(
      [given?.allowedAuthorizationHeaders, given?.timeoutMs, given?.statusOnError, given?.failureModeAllow],
      [['x-travel-user', 'x-plan'], 200, 403, true],
    );
  });
});

describe('a RateLimitService', () => {
  const limit = { ...head, kind: 'RateLimitService', service: 'ratelimit' };

  it('has these defaults: it fails open', () => {
    assert.deepEqual(read(limit).rateLimitServices, [
      {
        kind: 'RateLimitService',
        name: 'one',
        service: 'ratelimit',
        domain: 'gateway',
        timeoutMs: 100,
        failureModeDeny: false,
        headers: 'ietf',
        allowedResponseHeaders: [
          'ratelimit-limit',
          'ratelimit-remaining',
          'ratelimit-reset',
          'x-ratelimit-limit',
          'x-ratelimit-remaining',
          'x-ratelimit-reset',
        ],
        source,
      },
    ]);
  });

  it('keeps every field that is given', () => {
    const [given] = read({
      ...limit,
      service: 'grpc://10.0.0.5:8081',
      domain: 'edge',
      timeout_ms: 20,
      failure_mode_deny: true,
      headers: 'draft_03',
      allowed_response_headers: ['X-Plan'],
    }).rateLimitServices;
    assert.deepEqual(
      [given?.service, given?.domain, given?.timeoutMs, given?.failureModeDeny],
      ['grpc://10.0.0.5:8081', 'edge', 20, true],
    );
    assert.deepEqual([given?.headers, given?.allowedResponseHeaders], ['draft_03', ['x-plan']]);
  });
});
