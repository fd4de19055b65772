/** The records of a desk name header values as text, and clients send them as UTF-8. */
import assert from 'node:assert/strict';
import type { FrontdeskOptions, LimitDomainInput, MappingInput, RecordInput } from '../../src/index.ts';
import { authRecord, demoRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const utf8 = (text: string) => Buffer.from(text).toString('latin1');

const limits: readonly LimitDomainInput[] = [
  {
    domain: 'gateway',
    descriptors: [
      { key: 'tenant', value: 'müller', rate_limit: { unit: 'year', requests_per_unit: 1 } },
      { key: 'tenant', value: '文件*', rate_limit: { unit: 'year', requests_per_unit: 1 } },
    ],
  },
];
const labels = { gateway: [{ all: [{ tenant: { header: 'X-Tenant', omit_if_not_present: true } }] }] };

describe('a desk whose records contain text that is not ASCII', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  async function open(
    mapping: Partial<MappingInput>,
    options: FrontdeskOptions = {},
    records: readonly RecordInput[] = [],
  ) {
    const upstream = await startUpstream(servers);
    const own = mappingRecord('own', '/own', upstream.origin, { bypass_auth: true, ...mapping });
    const config = { records: [authRecord, limitRecord, own, ...records], limits, users: [demoRecord] };
    const desk = await openDesk({ config, demo: false, ...options });
    const { gateway } = await desk.listen();
    const ask = (...headers: string[]) => sendRaw(gateway.port, rawRequest('GET /own', headers));
    return { desk, upstream, ask, statusFor: async (tenant: string) => statusOf(await ask(`X-Tenant: ${tenant}`)) };
  }

  const asked = async (statusFor: (tenant: string) => Promise<number>, ...tenants: string[]) => {
    const statuses: number[] = [];
    for (const tenant of tenants) statuses.push(await statusFor(tenant));
    return statuses;
  };
  const tenants = [utf8('müller'), utf8('müller'), utf8('möller'), utf8('文件1'), utf8('文件1'), 'muller'];

  it('limits the client whose value is the text', async () => {
    const { desk, statusFor } = await open({ labels });
    assert.deepEqual(await asked(statusFor, ...tenants), [200, 429, 200, 200, 429, 200]);
    const headers = [['X-Tenant', 'müller']] as const;
    const explained = await desk.explain({ method: 'GET', url: '/own', headers });
    const [descriptor] = explained.rate_limit?.asked === true ? explained.rate_limit.descriptors : [];
    assert.deepEqual(descriptor?.entries, [{ key: 'tenant', value: 'müller' }]);
    assert.equal(descriptor?.limits?.length, 1);
  });

  it('limits them in another process too', async () => {
    const config = { records: [], limits };
    const { ratelimit } = await (await openDesk({ config, only: ['ratelimit'], demo: false })).listen();
    const serviceAddresses = { ratelimit: `127.0.0.1:${ratelimit.port}` };
    const { statusFor } = await open({ labels }, { only: ['gateway', 'auth'], serviceAddresses });
    assert.deepEqual(await asked(statusFor, ...tenants), [200, 429, 200, 200, 429, 200]);
  });

  it('limits bytes that are not UTF-8 as Latin-1, together with the same text in UTF-8', async () => {
    const { statusFor } = await open({ labels });
    assert.deepEqual(await asked(statusFor, 'm\xfcller', utf8('müller'), 'm\xfcller\xff'), [200, 429, 200]);
  });

  it('routes by the text of a header', async () => {
    const { statusFor } = await open({ headers: { 'X-Tenant': 'müller' } });
    assert.deepEqual(await asked(statusFor, utf8('müller'), utf8('möller')), [200, 404]);
  });

  it('adds headers in UTF-8 to requests and responses', async () => {
    const added = { 'X-By': 'Jörg 文件 100%%' };
    const { upstream, ask } = await open({ add_request_headers: added, add_response_headers: added });
    assert.ok((await ask()).includes(`x-by: ${utf8('Jörg 文件 100%')}\r\n`));
    assert.equal(upstream.only().headers['x-by'], utf8('Jörg 文件 100%'));
  });

  it('logs the user that an auth service names in UTF-8', async () => {
    const lines: LogLine[] = [];
    const auth = await startUpstream(servers, (res) => res.writeHead(200, { 'X-Travel-User': utf8('Jörg') }).end());
    const who = { ...authRecord, name: 'other', auth_service: auth.origin, default: false };
    const { upstream, ask } = await open(
      { bypass_auth: false, auth_service: 'other' },
      { logger: recordingLogger(lines), accessLog: 'json' },
      [who],
    );
    await ask();
    assert.equal(upstream.only().headers['x-travel-user'], utf8('Jörg'));
    const userOf = () => lines.find(({ message }) => message === 'request')?.fields['user'];
    await eventually(() => assert.equal(userOf(), 'Jörg'));
  });
});
