/** Bodies of 5 GiB through a gateway with the defaults of `serve`: they are streamed, with their Content-Length. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type Served, testServers } from '../support/serve.ts';
import { recipeRecord, startFront } from './front.ts';

const length = 5 * 1024 ** 3;
/** More than the gateway buffers before it forwards the request. */
const piece = Buffer.alloc(1024 * 1024);

describe('a body of 5 GiB through the gateway', () => {
  const servers = testServers();

  /** These tests end once data flows. The benchmark `bodies --mib=5120` sends the whole body. */
  async function startLarge(handler: (req: IncomingMessage, res: ServerResponse) => void): Promise<Served> {
    return startFront(servers, recipeRecord('npm', await servers.http(handler), { host: '127.0.0.1' }));
  }

  it('can be uploaded', async () => {
    let arrive = (_req: IncomingMessage) => {};
    const arrived = new Promise<IncomingMessage>((resolve) => {
      arrive = resolve;
    });
    const { port } = await startLarge((req) => req.once('data', () => arrive(req)));
    const headers = { 'content-length': length };
    const upload = request({ port, host: '127.0.0.1', method: 'POST', agent: false, headers }).on('error', () => {});
    upload.write(piece);
    assert.equal((await arrived).headers['content-length'], String(length));
    upload.destroy();
  });

  it('can be downloaded', async () => {
    const { port } = await startLarge(
      (_req, res) => void res.writeHead(200, { 'Content-Length': length }).write(piece),
    );
    const download = request({ port, host: '127.0.0.1', agent: false })
      .on('error', () => {})
      .end();
    const [response] = (await once(download, 'response')) as [IncomingMessage];
    assert.equal(response.headers['content-length'], String(length));
    await once(response, 'data');
    response.on('error', () => {}).destroy();
  });
});
