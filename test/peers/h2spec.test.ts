/** The gateway under h2spec: it handles broken frames as Node's own server does, in clear text and over TLS. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http2';
import { text } from 'node:stream/consumers';
import type { Middleware } from 'koa';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { describeWith } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { temporaryFiles } from '../support/temporary-files.ts';
import { makeCertificate } from '../support/wire/certificate.ts';
import { h2specFailures, nghttp2Differs } from './h2spec.ts';

const config = { records: [mappingRecord('all', '/', 'ok')] };
/** Reads the body first: a case that breaks a body expects no response before. */
const ok: Middleware = async (ctx) => {
  await text(ctx.req);
  ctx.body = 'ok';
};

/** A port that also speaks HTTP/1.1 responds to it in HTTP/1.1, and closes the connection. */
const inHttp1 = ['3.5 Sends invalid connection preface'];

describeWith('h2spec', 'h2spec', function () {
  this.timeout(120_000);
  const servers = testServers();
  const openDesk = desksOf(servers);
  const writeFiles = temporaryFiles();

  async function unexpected(port: number, args: readonly string[] = []): Promise<readonly string[]> {
    const failed = await h2specFailures(port, ['--timeout', '3', ...args]);
    return failed.filter((name) => !nghttp2Differs.includes(name));
  }

  it("finds no fault of the gateway, in clear text and over TLS, that Node's own server does not have", async () => {
    const tls = await makeCertificate(await writeFiles(), 'IP:127.0.0.1');
    const node = await servers.listen(
      createServer(
        (request, response) =>
          void text(request).then(
            (body) => response.end(body),
            () => {},
          ),
      ),
    );
    const open = async (more = {}) => {
      const desk = await openDesk({ demo: false, config, services: { ok }, ...more });
      return (await desk.listen()).gateway.port;
    };
    const clear = await open();
    const secure = tls && (await open({ tlsCert: tls.file, tlsKey: tls.keyFile }));
    // At the same time, because each run waits for the time-outs of the cases that fail.
    assert.deepEqual(
      await Promise.all([unexpected(node.port), unexpected(clear), secure && unexpected(secure, ['--tls', '-k'])]),
      [[], inHttp1, secure && []],
    );
  });
});
