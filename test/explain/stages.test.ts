/** The stages in an explanation, and the credentials that it conceals. */
import assert from 'node:assert/strict';
import type { LabelGroup, Mapping } from '#config';
import type { ExplainRequest, Explanation } from '#explain';
import type { Target } from '#gateway';
import { createLimiter } from '#ratelimit';
import { healthCheckOf } from '../support/clusters.ts';
import {
  authRecordOf,
  explainOf,
  type GatewayFields,
  gatewayOf,
  labelled,
  limitRecordOf,
  mappingOf,
  redirectOf,
} from '../support/edge.ts';
import { domain, limit, node } from '../support/limits.ts';
import { testServers } from '../support/serve.ts';

const elsewhere: Target = {
  kind: 'remote',
  origins: () => ['http://10.0.0.1:9001', 'http://10.0.0.2:9001'],
  path: '/base',
};
const deny = { outcome: 'deny', status: 401, headers: {} } as const;
const auth = { record: authRecordOf(), port: () => deny };

describe('an explanation', () => {
  const servers = testServers(after);

  function explain(options: GatewayFields, request: Partial<ExplainRequest> = {}): Promise<Explanation> {
    const resolve = () => elsewhere;
    const gateway = gatewayOf({ resolve, ...options });
    servers.later(gateway.close);
    return explainOf(gateway)({ method: 'GET', url: '/v1/hotels/x', ...request });
  }

  const mappings = (...fields: Partial<Mapping>[]) => ({ mappings: fields.map((one) => mappingOf(one)) });

  it('lists mappings whose path does not match only with `all`', async () => {
    const { candidates, candidates_not_listed: others } = await explain(
      mappings({}, { name: 'car', prefix: '/v1/cars' }),
      {
        all: true,
      },
    );
    assert.deepEqual([candidates.map(({ name }) => name), others], [['hotel', 'car'], 0]);
  });

  it('reports the shares of a canary, and the mapping that receives a copy', async () => {
    const { candidates, shadow } = await explain(
      mappings({}, { name: 'beta', weight: 20 }, { name: 'copy', shadow: true, weight: 5, rewrite: '/copy/' }),
    );
    assert.deepEqual(
      candidates.map(({ name, outcome, reason }) => `${name} ${outcome}: ${reason}`),
      [
        'beta matched: weight 20 of 100',
        'copy shadow: it receives copies of 5 of 100 requests',
        'hotel matched: weight 80 of 100',
      ],
    );
    assert.equal(shadow?.url, 'http://10.0.0.1:9001/base/copy/x');
  });

  async function checkRejection(
    request: Partial<ExplainRequest>,
    ...expected: [stage: string, status: number, problem: string]
  ) {
    const regexRewrite = { pattern: '/evil', substitution: '/..' };
    const { outcome, target } = await explain(mappings({ regexRewrite, maxRequestBytes: 1_000_000 }), request);
    assert.ok(outcome.kind === 'refused');
    assert.deepEqual([outcome.stage, outcome.status, outcome.problem, target], [...expected, undefined]);
  }

  it('names the stage that rejects a request, and the problem', async () => {
    const via = Array.from({ length: 5 }, () => '1.1 frontdesk').join();
    await checkRejection({ url: '/v1/%2e%2e/x' }, 'before_routing', 400, 'bad-path');
    await checkRejection({ method: 'TRACE' }, 'before_routing', 405, 'method-not-allowed');
    await checkRejection({ url: '/nowhere' }, 'routing', 404, 'not-found');
    await checkRejection({ url: '/v1/hotels/evil' }, 'forwarding', 400, 'bad-path');
    const headers = [['Content-Length', '2000000']] as const;
    await checkRejection({ method: 'POST', headers }, 'forwarding', 413, 'body-too-large');
    await checkRejection({ headers: [['Via', via]] }, 'routing', 508, 'loop-detected');
    const elsewhere = [['Destination', '/elsewhere']] as const;
    await checkRejection({ method: 'MOVE', headers: elsewhere }, 'forwarding', 502, 'destination-elsewhere');
  });

  it('neither redirects nor copies a request whose Destination is rejected first', async () => {
    const moved = { method: 'MOVE', headers: [['Destination', '/elsewhere']] } as const;
    const redirect = redirectOf({ host: 'new.example' });
    const redirected = await explain(mappings({ redirect }), moved);
    const copied = await explain(mappings({}, { name: 'copy', shadow: true }), moved);
    for (const { outcome, redirect, shadow } of [redirected, copied])
      assert.deepEqual([outcome.kind, redirect, shadow], ['refused', undefined, undefined]);
  });

  it('names the rejection by STRICT_PATHS of a path that a service could read as another', async () => {
    const { outcome, target } = await explain(
      { ...mappings({}, { prefix: '/', bypassAuth: true }), authServices: [auth], strictPaths: true },
      { url: '/V1/hotels' },
    );
    const { kind, stage, status, problem } = { stage: '', status: 0, problem: '', ...outcome };
    assert.deepEqual([kind, stage, status, problem, target], ['refused', 'routing', 400, 'bad-path', undefined]);
  });

  it('uses the scheme and host of an absolute URL', async () => {
    const { request, target } = await explain({}, { url: 'https://api.example:8443/v1/hotels?a=1' });
    const { scheme, host, path, query } = request;
    assert.deepEqual([scheme, host, path, query], ['https', 'api.example', '/v1/hotels', '?a=1']);
    const forwarded = target?.headers.filter(({ name }) => name.startsWith('x-forwarded-')).map(({ value }) => value);
    assert.deepEqual(forwarded, ['127.0.0.1', 'https', 'api.example:8443', '/', '/v1/hotels']);
  });

  it('omits the Authorization header that remove_authorization removes', async () => {
    const headers = [['Authorization', 'Basic eDp5']] as const;
    for (const removeAuthorization of [true, false]) {
      const record = authRecordOf({ removeAuthorization });
      const { auth: asked, target } = await explain({ authServices: [{ ...auth, record }] }, { headers });
      assert.equal(target?.headers_removed.includes('authorization'), removeAuthorization);
      assert.equal(asked?.asked && /, without Authorization$/.test(asked.on_success), removeAuthorization);
    }
  });

  it("conceals the client's credentials, and values that a record sets, whatever their names", async () => {
    const secrets = ['ZGVtbzpkZW1v', 'sid=4711', 's3cr3t-value'] as const;
    const [basic, cookie, configured] = secrets;
    const requestHeaders = { add: [{ name: 'x-plan', value: configured, append: false }], remove: [] };
    const responseHeaders = { add: [{ name: 'x-tier', value: configured, append: true }], remove: [] };
    const match = { kind: 'exact', value: configured } as const;
    const labels = {
      gateway: ['authorization', 'cookie', 'x-plan']
        .flatMap((name) => labelled(name, `the-${name}`))
        .concat([
          {
            name: 'default',
            labels: [{ kind: 'header', name: 'd', header: 'd', omitIfNotPresent: false, default: configured }],
          },
          { name: 'fixed', labels: [{ kind: 'generic_key', name: 'fixed', value: configured }] },
        ]),
    };
    const healthCheck = healthCheckOf({ path: `/health?k=${configured}` });
    const explained = await explain(
      {
        ...mappings(
          { labels, requestHeaders, responseHeaders, healthCheck },
          { name: 'keyed', headers: [{ name: 'x-plan', match }] },
          { name: 'asked', queryParameters: [{ name: 'v', match: { kind: 'regex', pattern: `${configured}|x` } }] },
        ),
        authServices: [{ record: authRecordOf({ addAuthHeaders: [{ name: 'X-Asker', value: configured }] }) }],
        rateLimitService: limitRecordOf(),
        limiter: createLimiter({ limits: [domain('gateway', node(`fixed=${configured}`, limit(10)))] }),
      },
      {
        url: '/v1/hotels/x?v=typed-1',
        headers: [
          ['Authorization', `Basic ${basic}`],
          ['Cookie', cookie],
          ['X-Plan', 'typed-2'],
        ],
      },
    );
    const text = JSON.stringify(explained);
    for (const secret of secrets) assert.ok(!text.includes(secret), secret);
    for (const shown of ['"Basic …"', 'typed-1', '"value":"typed-2"', 'fixed=…', '/health every'])
      assert.ok(text.includes(shown), shown);
  });

  it('names the mapping of the method that a preflight announces', async () => {
    const cors = { origins: ['*'], methods: [], headers: [], exposedHeaders: [], credentials: false };
    const rule = { ...cors, maxAgeSeconds: undefined };
    const write: Partial<Mapping> = { name: 'write', method: { kind: 'exact', value: 'PUT' }, cors: rule };
    const headers = Object.entries({ Origin: 'https://a.example', 'Access-Control-Request-Method': 'PUT' });
    const { outcome, mapping } = await explain(mappings({ cors: rule }, write), { method: 'OPTIONS', headers });
    assert.deepEqual([outcome.kind, mapping?.name], ['preflight', 'write']);
  });

  it('shows the user even in a header whose name suggests a credential', async () => {
    const record = authRecordOf({ allowedAuthorizationHeaders: ['x-auth-user'] });
    const { target } = await explain({ authServices: [{ record, port: () => deny }] }, { user: 'ann' });
    assert.equal(target?.headers.find(({ name }) => name === 'x-auth-user')?.value, 'ann');
  });

  it('explains why a request needs no authentication', async () => {
    const whyOf = async (options: GatewayFields) => {
      const { auth: explained } = await explain(options);
      return explained?.asked === false ? explained.reason : undefined;
    };
    const bypassed = { authServices: [auth], ...mappings({ bypassAuth: true }) };
    assert.equal(await whyOf({}), 'there is no AuthService record');
    assert.equal(await whyOf(bypassed), 'the mapping has bypass_auth: true');
    assert.equal(await whyOf({ authServices: [auth] }), undefined);
  });

  it('reports that built-in routes fail closed', async () => {
    const route = { name: 'diag', prefix: '/diag', forAdmins: true, run: async () => {} };
    const options = {
      authServices: [{ ...auth, record: authRecordOf({ failureModeAllow: true }) }],
      internalRoutes: [route],
    };
    const onError = async (url: string) => {
      const { auth: part } = await explain(options, { url });
      return part?.asked && part.on_error;
    };
    assert.equal(await onError('/v1/hotels'), 'the request continues without an identity');
    assert.equal(await onError('/diag'), 'the client gets 503');
  });

  const labels = { gateway: labelled('x-travel-user', 'user') };
  const limited = { ...mappings({ labels }), authServices: [auth], rateLimitService: limitRecordOf() };

  it('lists the descriptors for the limiter in this process, and counts nothing', async () => {
    const limiter = createLimiter({ limits: [domain('gateway', node('user', limit(10)))] });
    for (let times = 0; times < 20; times += 1) await explain({ ...limited, limiter }, { user: 'ann' });
    const { rate_limit: explained } = await explain({ ...limited, limiter }, { user: 'ann' });
    assert.ok(explained?.asked && explained.decided_by === 'this process');
    const descriptors = explained.descriptors.map(({ entries }) => ({ entries }));
    assert.deepEqual(descriptors, [{ entries: [{ key: 'user', value: 'ann' }] }]);
    const decision = limiter.shouldRateLimit({ domain: 'gateway', descriptors });
    assert.ok(!(decision instanceof Promise));
    assert.equal(decision.statuses[0]?.limitRemaining, 9);
  });

  it('lists a limit before authentication even if a later one replaces it, as they are checked separately', async () => {
    const address: LabelGroup = { name: 'address', labels: [{ kind: 'remote_address', name: 'from' }] };
    const replacing = limit(10, 'minute', { replaces: ['general'] });
    const limiter = createLimiter({
      limits: [domain('gateway', node('from', limit(1, 'minute', { name: 'general' })), node('user', replacing))],
    });
    const both = mappings({ labels: { gateway: [...labels.gateway, address] } });
    const { rate_limit: explained } = await explain({ ...limited, ...both, limiter }, { user: 'ann' });
    assert.ok(explained?.asked);
    assert.deepEqual(
      explained.descriptors.map(({ limits }) => limits?.map((one) => one.requests_per_unit)),
      [[1], [10]],
    );
  });

  it('lists no limits when another process decides, and names that process', async () => {
    const limiter = { shouldRateLimit: () => ({ overallCode: 'OK', statuses: [] }) as const };
    const { rate_limit: explained } = await explain({ ...limited, limiter }, { user: 'ann' });
    assert.ok(explained?.asked && explained.decided_by.startsWith('http://10.0.0.1:9001'));
    assert.equal(explained.descriptors[0]?.limits, undefined);
  });
});
