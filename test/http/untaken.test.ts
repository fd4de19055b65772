/** Answers that nobody takes, and connections at rest for other reasons. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { type HttpServerOptions, serveHttp } from '#http';
import { testServers } from '../support/serve.ts';
import { httpLimits } from '../support/wire/http-limits.ts';

/** More than the buffers of two sockets hold. */
const large = Buffer.alloc(32 * 1024 * 1024);

describe('a client that takes nothing', () => {
  const servers = testServers();

  async function serving(handler: RequestListener, options: Partial<HttpServerOptions>) {
    const server = await serveHttp({ ...httpLimits, handler, ...options });
    servers.later(() => server.close(0));
    return server.port;
  }

  it('loses its connection, and the answer that waited for it goes', async () => {
    const answering = new Promise<ServerResponse>((resolve) => {
      const handler: RequestListener = (_request, response) => resolve(response.end(large));
      void serving(handler, { answerIdleTimeoutMs: 30 }).then((port) => {
        const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')).pause();
        servers.later(() => socket.destroy());
        socket.on('error', () => {});
      });
    });
    const answer = await answering;
    await once(answer, 'close');
    assert.equal(answer.req.socket.destroyed, true);
  });

  it('keeps it while it takes some now and then', async () => {
    const port = await serving((_request, response) => response.end(large), { answerIdleTimeoutMs: 500 });
    const [response] = (await once(get({ port, host: '127.0.0.1', agent: false }), 'response')) as [IncomingMessage];
    let taken = 0;
    for await (const chunk of response) taken += (chunk as Buffer).length;
    assert.equal(taken, large.length);
  });

  it('is not one who waits for the next event of a stream', async () => {
    let send = () => {};
    const port = await serving(
      (_request, response) => {
        response.writeHead(200).write('one');
        send = () => response.end('two');
      },
      { answerIdleTimeoutMs: 20 },
    );
    const [response] = (await once(get({ port, host: '127.0.0.1', agent: false }), 'response')) as [IncomingMessage];
    await once(response, 'data');
    setTimeout(send, 100);
    const [rest] = await once(response, 'data');
    assert.equal(String(rest), 'two');
  });

  it('is not one who is between two requests, for whom the keep-alive time-out counts', async () => {
    const port = await serving((_request, response) => response.end('x'), {
      answerIdleTimeoutMs: 60_000,
      keepAliveTimeoutMs: 20,
    });
    const agent = new Agent({ keepAlive: true });
    servers.later(() => agent.destroy());
    const [response] = (await once(get({ port, host: '127.0.0.1', agent }), 'response')) as [IncomingMessage];
    const { socket } = response;
    const ended = once(socket, 'close');
    response.resume();
    await ended;
  });
});
