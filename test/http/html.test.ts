import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { contentSecurity, escapeHtml, htmlDocument } from '#http';
import { htmlHeaders, htmlPage } from '../../src/http/html.ts';

/** What a browser makes of the entities that we write. */
function unescapeHtml(html: string): string {
  return html.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

describe('escapeHtml', () => {
  function check(text: string, expected: string) {
    it(`writes ${text} as ${expected}`, () => {
      assert.equal(escapeHtml(text), expected);
    });
  }

  check('plain', 'plain');
  check('<b>', '&#60;b&#62;');
  check('a & b', 'a &#38; b');
  check(`"'`, '&#34;&#39;');
  check('&lt;', '&#38;lt;');

  it('leaves nothing that could open a tag or end an attribute, and loses nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'<>&"\'ab; #') }), (text) => {
        assert.ok(!/[<>"']/.test(escapeHtml(text)));
        assert.equal(unescapeHtml(escapeHtml(text)), text);
      }),
    );
  });
});

describe('htmlPage', () => {
  function check(value: unknown, expected: string) {
    it(`shows ${JSON.stringify(value)} as ${expected}`, () => {
      const page = htmlPage('T', value);
      assert.equal(page.slice(page.indexOf('</h1>\n') + 6, page.indexOf('\n</main>')), expected);
    });
  }

  check('text', 'text');
  check(1.5, '1.5');
  check(null, 'null');
  check(true, 'true');
  check([], '<ol></ol>');
  check(['a', 'b'], '<ol><li>a</li><li>b</li></ol>');
  check({ a: { b: [1] } }, '<dl><dt>a</dt><dd><dl><dt>b</dt><dd><ol><li>1</li></ol></dd></dl></dd></dl>');
  check({ '<i>': '<script>' }, '<dl><dt>&#60;i&#62;</dt><dd>&#60;script&#62;</dd></dl>');
  check('https://desk.test/a?b=1&c', '<a href="https://desk.test/a?b=1&#38;c">https://desk.test/a?b=1&#38;c</a>');
  check('/v1/hotels/', '<a href="/v1/hotels/">/v1/hotels/</a>');
  check('/', '<a href="/">/</a>');
  check('//evil.example/', '//evil.example/');
  check('/\\evil.example/', '/\\evil.example/');
  check('javascript:alert(1)', 'javascript:alert(1)');
  check('/a "onclick=', '/a &#34;onclick=');
  check('/a"onclick=', '<a href="/a&#34;onclick=">/a&#34;onclick=</a>');
  check('https://desk.test is down', 'https://desk.test is down');

  it('holds no tag that the value brought', () => {
    const tags = (page: string) => page.match(/<\/?[a-z!][^>]*>/g)?.map((tag) => tag.replace(/ href=".*"/, '')) ?? [];
    fc.assert(
      fc.property(fc.string(), (text) => {
        const known = new Set([...tags(htmlPage('T', ['x', '/x', { a: '1' }]))]);
        assert.deepEqual(
          tags(htmlPage(text, [text, { [text]: text }])).filter((tag) => !known.has(tag)),
          [],
        );
      }),
    );
  });

  it('escapes its title', () => {
    assert.ok(htmlPage('</title><script>', 1).includes('<title>&#60;/title&#62;&#60;script&#62;</title>'));
  });
});

describe('htmlDocument', () => {
  it('puts the markup in a whole document and escapes the title', () => {
    const page = htmlDocument({ title: 'a < b', css: 'p{margin:0}', main: '<p>here</p>' });
    assert.ok(page.startsWith('<!doctype html>\n<html lang="en">'));
    assert.ok(page.includes('<title>a &#60; b</title>'));
    assert.ok(page.includes('<style>p{margin:0}</style>'));
    assert.ok(page.includes('<main>\n<p>here</p>\n</main>'));
  });
});

describe('contentSecurity', () => {
  function policyOf(headers: Readonly<Record<string, string>>): string {
    return headers['Content-Security-Policy'] ?? '';
  }

  it('allows the style that it is given by its digest, and nothing else', () => {
    const digest = createHash('sha256').update('p{margin:0}').digest('base64');
    const policy = policyOf(contentSecurity('p{margin:0}'));
    assert.ok(policy.startsWith(`default-src 'none'; style-src 'sha256-${digest}'; `));
    assert.ok(!policy.includes('unsafe'));
  });

  it('allows the very style of our pages', () => {
    const style = /<style>(.*?)<\/style>/s.exec(htmlPage('T', 1))?.[1] ?? '';
    assert.equal(policyOf(htmlHeaders), policyOf(contentSecurity(style)));
  });
});
