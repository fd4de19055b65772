/** At the start, unreachable auth and rate-limit services are logged. */
import assert from 'node:assert/strict';
import { authRecord, desksOf, limitRecord, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { eventually } from '../support/waiting.ts';

describe('a gateway whose auth or rate-limit service', () => {
  const servers = testServers();
  const open = desksOf(servers);

  async function warningsOf(auth: object, limits: object, count: number): Promise<readonly string[]> {
    const lines: LogLine[] = [];
    const warnings = () => lines.flatMap(({ level, message = '' }) => (level === 'warn' ? [message] : []));
    const records = [
      mappingRecord('app', '/', 'http://127.0.0.1:9'),
      { ...authRecord, ...auth },
      { ...limitRecord, ...limits },
    ];
    await open({ demo: false, only: ['gateway'], config: { records }, logger: recordingLogger(lines) });
    await eventually(() => assert.ok(warnings().length >= count));
    return warnings();
  }

  it('refuses connections logs this at the start, and what happens to requests', async () => {
    const { port } = await servers.refusing();
    const address = `127.0.0.1:${port}`;
    const warnings = await warningsOf({ auth_service: address }, { service: `grpc://${address}` }, 2);
    assert.deepEqual([...warnings].sort(), [
      `AuthService auth is unreachable at http://${address} (ECONNREFUSED); until that changes, requests are rejected with 503`,
      `RateLimitService limits is unreachable at grpc://${address} (ECONNREFUSED); until that changes, requests pass without being counted`,
    ]);
  });

  it('accepts connections does not log it', async () => {
    const { port } = await servers.tcp(() => {});
    const refusing = `127.0.0.1:${(await servers.refusing()).port}`;
    const warnings = await warningsOf({ auth_service: `127.0.0.1:${port}` }, { service: `grpc://${refusing}` }, 1);
    assert.deepEqual(warnings.length, 1);
    assert.match(warnings[0] ?? '', /^RateLimitService/);
  });
});
