/** A page over HTTP/2 opens a WebSocket through the gateway: on a stream of the connection that it came over. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createFrontdesk } from '../../src/index.ts';
import { mappingRecord } from '../support/desks.ts';
import { eventually } from '../support/waiting.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { echoWebSocket } from '../support/wire/echo-websocket.ts';
import { describeInBrowser } from './browser.ts';

describeInBrowser('a WebSocket in a page', function ({ servers, writeFiles, visit }) {
  this.timeout(60_000);

  it('uses the HTTP/2 connection of the page', async () => {
    const certificate = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    assert.ok(certificate, 'openssl is not installed');
    const service = await servers.listen(
      createServer((_req, res) => res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>x</title>')).on(
        'upgrade',
        (req, socket) => echoWebSocket(socket, req),
      ),
    );
    const requests: unknown[] = [];
    const desk = await createFrontdesk({
      config: {
        records: [mappingRecord('app', '/', service.origin, { allow_upgrade: ['websocket'], bypass_auth: true })],
      },
      port: 0,
      tlsCert: certificate.file,
      tlsKey: certificate.keyFile,
      logger: {
        info(fields: { readonly path?: string; readonly protocol?: string; readonly status?: number }, message) {
          if (message === 'request') requests.push([fields.path, fields.protocol, fields.status]);
        },
        warn() {},
        error() {},
      },
    });
    servers.later(desk.close);
    const { gateway } = await desk.listen();
    const { page } = await visit(`${gateway?.url}/page`, {
      ignoreHTTPSErrors: true,
      isAnonymous: true,
      expected: /favicon/,
    });
    const echoed = await page.evaluate(`new Promise((resolve, reject) => {
      const client = new WebSocket('wss://' + location.host + '/socket', ['chat']);
      client.onopen = () => client.send('hello');
      client.onmessage = ({ data }) => { client.close(); resolve(data + ' ' + client.protocol); };
      client.onerror = () => reject(new Error('the WebSocket failed'));
    })`);
    assert.equal(echoed, 'hello chat');
    await eventually(() => {
      assert.deepEqual(
        requests.filter((one) => String(one) !== '/favicon.ico,HTTP/2.0,200'),
        [
          ['/page', 'HTTP/2.0', 200],
          ['/socket', 'HTTP/2.0', 101],
        ],
      );
    });
  });
});
