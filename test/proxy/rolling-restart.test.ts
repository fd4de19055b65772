/** A rolling restart of two replicas under load, which the gateway's clients do not notice. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'undici';
import { startEdge } from '../support/edge.ts';
import { freePort } from '../support/programs/free-port.ts';
import { testServers } from '../support/serve.ts';

/** How often each replica restarts, and the minimum numbers of requests. Set TEST_RESTARTS=10 for a long run. */
const restarts = Number(process.env['TEST_RESTARTS'] ?? 1);
const gets = 100 * restarts;
const posts = 40 * restarts;

const program = new URL('../support/programs/replica.mjs', import.meta.url).pathname;

async function startReplica(port: number): Promise<ChildProcess> {
  const replica = spawn(process.execPath, [program, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(replica.stdout, 'data');
  return replica;
}

async function stopReplica(replica: ChildProcess): Promise<void> {
  const exited = once(replica, 'exit');
  replica.kill('SIGTERM');
  await exited;
}

describe('a rolling restart of two replicas', () => {
  const servers = testServers();

  it('loses no GET and no POST', async function () {
    this.timeout(20_000 + 20_000 * restarts);
    const ports = [await freePort(), await freePort()];
    const replicas = await Promise.all(ports.map(startReplica));
    servers.later(() => {
      for (const replica of replicas) replica.kill('SIGKILL');
    });
    const origins = ports.map((port) => `http://127.0.0.1:${port}`);
    const targets = { hotel: { kind: 'remote', origins: () => origins, path: '' } as const };
    const edge = await startEdge(servers, { targets });
    const dispatcher = new Agent({ connections: 24 });
    servers.later(() => dispatcher.destroy());
    const lost: string[] = [];
    const sent = { GET: 0, POST: 0 };
    let isRestarting = true;

    async function send(method: 'GET' | 'POST', count: number, body?: string): Promise<void> {
      while (sent[method] < count || isRestarting) {
        sent[method] += 1;
        const response = await request(`${edge.origin}/v1/hotels`, { method, body: body ?? null, dispatcher });
        const text = await response.body.text();
        if (response.statusCode !== 200 || text !== String(body?.length ?? 0)) lost.push(`${method}: ${text}`);
      }
    }

    async function restartAll(): Promise<void> {
      for (let round = 0; round < restarts; round += 1)
        for (const [index, port] of ports.entries()) {
          await stopReplica(replicas[index] as ChildProcess);
          replicas[index] = await startReplica(port);
        }
      isRestarting = false;
    }

    const load = [
      ...Array.from({ length: 16 }, () => send('GET', gets)),
      ...Array.from({ length: 8 }, () => send('POST', posts, 'hello')),
    ];
    await Promise.all([...load, restartAll()]);
    assert.deepEqual(lost, []);
    assert.ok(sent.GET >= gets && sent.POST >= posts);
  });
});
