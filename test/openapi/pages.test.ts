/** Documentation pages: complete without JavaScript, and without content from other hosts. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import request from 'supertest';
import { desksOf } from '../support/desks.ts';
import { isInstalled } from '../support/programs/installed.ts';
import { testServers } from '../support/serve.ts';
import { documentPrefixes } from './written-documents.ts';

const run = promisify(execFile);

describe('documentation pages', () => {
  const servers = testServers(after);
  const openDesk = desksOf(servers);
  let gatewayUrl: string;

  before(async () => {
    const desk = await openDesk();
    gatewayUrl = (await desk.listen()).gateway.url;
  });

  const pageOf = (prefix: string) =>
    request(gatewayUrl).get(`${prefix}/docs/`).set('Accept', 'text/html').auth('demo', 'demo').expect(200);

  for (const prefix of documentPrefixes) {
    it(`of ${prefix} have a section and a link for each operation, and headings in order`, async () => {
      const { body } = await request(gatewayUrl).get(`${prefix}/openapi.json`).auth('demo', 'demo');
      const { text } = await pageOf(prefix);
      const operations = Object.values(body.paths as object).flatMap((item) => Object.values(item));
      for (const { operationId } of operations as { operationId: string }[]) {
        assert.ok(text.includes(`<section id="${operationId}"`), operationId);
        assert.ok(text.includes(`href="#${operationId}"`), operationId);
      }
      const levels = Array.from(text.matchAll(/<h([1-6])/g), ([, level]) => Number(level));
      assert.equal(levels[0], 1);
      for (const [index, level] of levels.entries()) assert.ok(level <= (levels[index - 1] ?? 0) + 1);
      assert.equal(levels.filter((level) => level === 1).length, 1);
    });

    it(`of ${prefix} load only their own files, which have media types and entity tags`, async () => {
      const { text } = await pageOf(prefix);
      const targets = Array.from(text.matchAll(/(?:href|src)="([^"#][^"]*)"/g), ([, target = '']) => target);
      const files = ['swagger-ui.css', 'docs.css', 'swagger-ui-bundle.js', 'docs.js'];
      assert.deepEqual(
        targets.filter((target) => !target.startsWith('data:')),
        [...files, '../openapi.json'],
      );
      for (const name of files) {
        const get = () => request(gatewayUrl).get(`${prefix}/docs/${name}`).auth('demo', 'demo').buffer();
        const { headers } = await get().expect(200);
        assert.match(String(headers['content-type']), name.endsWith('.css') ? /^text\/css;/ : /^text\/javascript;/);
        await get().set('If-None-Match', String(headers['etag'])).expect(304);
      }
    });

    it(`of ${prefix} have curl commands that work unchanged`, async function () {
      if (!isInstalled('curl')) this.skip();
      const lines = Array.from((await pageOf(prefix)).text.matchAll(/<pre><code>([^<]*)<\/code><\/pre>/g), ([, line]) =>
        String(line).replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code))),
      );
      assert.ok(lines.length > 4);
      for (const line of lines) {
        const { stdout } = await run('sh', ['-c', `${line.replace('curl -i', 'curl -is')}`]);
        assert.match(stdout, /^HTTP\/1\.1 20[01] /, line);
      }
    });
  }
});
