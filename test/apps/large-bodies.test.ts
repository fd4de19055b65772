/** Bodies of 5 GiB behind the gateway as `serve` runs it: they flow, with their length announced. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type Served, testServers } from '../support/serve.ts';
import { shownRecord, startFront } from './front.ts';

const length = 5 * 1024 ** 3;
/** More than waits anywhere on the way before the service has its request. */
const piece = Buffer.alloc(1024 * 1024);

describe('a body of 5 GiB behind the gateway', () => {
  const servers = testServers();

  /** The benchmark `throughput --mib=5120` sends all of it: here either end goes when it flows. */
  async function startLarge(answer: (req: IncomingMessage, res: ServerResponse) => void): Promise<Served> {
    return startFront(servers, shownRecord('npm', await servers.http(answer), { host: '127.0.0.1' }));
  }

  it('goes up', async () => {
    let arrives = (_req: IncomingMessage) => {};
    const arrived = new Promise<IncomingMessage>((resolve) => {
      arrives = resolve;
    });
    const { port } = await startLarge((req) => req.once('data', () => arrives(req)));
    const headers = { 'content-length': length };
    const upload = request({ port, host: '127.0.0.1', method: 'POST', agent: false, headers }).on('error', () => {});
    upload.write(piece);
    assert.equal((await arrived).headers['content-length'], String(length));
    upload.destroy();
  });

  it('comes down', async () => {
    const { port } = await startLarge(
      (_req, res) => void res.writeHead(200, { 'Content-Length': length }).write(piece),
    );
    const asked = request({ port, host: '127.0.0.1', agent: false })
      .on('error', () => {})
      .end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(answer.headers['content-length'], String(length));
    await once(answer, 'data');
    answer.on('error', () => {}).destroy();
  });
});
