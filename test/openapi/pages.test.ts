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
/** One that has the library of the programs. */
const python = process.env['TEST_PYTHON'] ?? 'python3';

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
        assert.ok(text.includes(`<section class="operation" id="${operationId}"`), operationId);
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
      const files = ['docs.css', 'docs.js'];
      assert.deepEqual(
        targets.filter((target) => /^(?!data:)[^/]*$/.test(target)),
        files,
      );
      for (const name of files) {
        const get = () => request(gatewayUrl).get(`${prefix}/docs/${name}`).auth('demo', 'demo').buffer();
        const { headers } = await get().expect(200);
        assert.match(String(headers['content-type']), name.endsWith('.css') ? /^text\/css;/ : /^text\/javascript;/);
        await get().set('If-None-Match', String(headers['etag'])).expect(304);
      }
    });

    it(`of ${prefix} link to pages that exist`, async () => {
      const { text } = await pageOf(prefix);
      const { origin } = new URL(gatewayUrl);
      const hrefs = Array.from(text.matchAll(/<a href="([^"#]+)"/g), ([, href = '']) => decoded(href));
      const urls = new Set(hrefs.map((href) => new URL(href, `${gatewayUrl}${prefix}/docs/`).href));
      assert.ok(urls.has(`${origin}/`) && urls.has(`${origin}${prefix}/openapi.json`));
      assert.ok(urls.has(`${origin}/gateway/v0/problems/not-found`));
      for (const url of urls)
        await request(url).get('').auth('demo', 'demo').set('Accept', 'text/html, */*').expect(200);
    });

    for (const [language, program, args] of [
      ['curl', 'sh', ['-c']],
      ['JavaScript', process.execPath, ['--input-type=module', '-e']],
      ['Python', python, ['-c']],
    ] as const)
      it(`of ${prefix} have programs in ${language} that work unchanged`, async function () {
        if (!(await canRun(language))) this.skip();
        const texts = programsIn((await pageOf(prefix)).text, language);
        assert.ok(texts.length > 4);
        const { stdout } = await run(program, [...args, texts.map(separate[language]).join('\n')]);
        assert.equal(stdout.match(/^(?:HTTP\/1\.1 )?20[01] /gm)?.length, texts.length, stdout);
      });
  }

  it('link to the documentation of the other versions', async () => {
    const { text } = await pageOf('/v1');
    const [, links = ''] = /<nav aria-label="Pages">(.*?)<\/nav>/s.exec(text) ?? [];
    assert.match(links, /<a aria-current="page">v1<\/a><a href="\/v2\/docs\/">v2<\/a>/);
    assert.doesNotMatch((await pageOf('/v1/hotels')).text, /\/v2\/docs\//);
  });
});

/** Lets several programs run as one. */
const separate = {
  curl: (text: string) => `${text.replace('curl -i', 'curl -is')}; echo`,
  JavaScript: (text: string) => `{ ${text} }`,
  Python: (text: string) => text,
} as const;

function programsIn(page: string, language: string): readonly string[] {
  const parts = page.matchAll(/data-language="(\w+)".*?<pre [^>]*><code>([^<]*)<\/code>/gs);
  return [...parts].filter(([, name]) => name === language).map(([, , text = '']) => decoded(text));
}

function decoded(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

/** Whether there is curl, or Python with the library that the programs use. */
async function canRun(language: keyof typeof separate): Promise<boolean> {
  if (language === 'curl') return isInstalled('curl');
  if (language === 'JavaScript') return true;
  return run(python, ['-c', 'import requests']).then(
    () => true,
    () => false,
  );
}
