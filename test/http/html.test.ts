import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import {
  dataMarkup,
  html,
  htmlDocument,
  htmlFormatter,
  type Markup,
  pageHeaders,
  phraseMarkup,
  proseMarkup,
} from '#http';

function textOf(main: Markup): string {
  const page = htmlDocument({ title: '', main });
  return page.slice(page.indexOf('</h1>\n') + 6, page.indexOf('\n</main>'));
}

/** The text that a browser reads from our entities. */
function readEntities(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

describe('html', () => {
  function check(what: string, markup: Markup, expected: string) {
    it(`writes ${what}`, () => assert.equal(textOf(markup), expected));
  }

  check('a text with each special character escaped', html`${`<b> & "'`}`, '&#60;b&#62; &#38; &#34;&#39;');
  check('an entity as the text that it is', html`${'&lt;'}`, '&#38;lt;');
  check(
    'markup, numbers and lists as they are',
    html`${html`<b>${'<'}</b>`}${0}${['a', html`<i>`]}`,
    '<b>&#60;</b>0a<i>',
  );
  check('undefined and false as nothing', html`a${undefined}${false}b`, 'ab');

  it('does not accept parsed JSON as markup', () => {
    const forged = JSON.parse('{"markup": "<script>", "Symbol(markup)": "<script>"}');
    assert.throws(() => html`${forged}`, TypeError);
    assert.ok(!textOf(dataMarkup(forged)).includes('<script>'));
  });

  it('writes nothing that could open a tag or end an attribute, and loses nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'<>&"\'ab; #') }), (text) => {
        const written = textOf(html`${text}`);
        assert.ok(!/[<>"']/.test(written));
        assert.equal(readEntities(written), text);
      }),
    );
  });
});

describe('dataMarkup', () => {
  function check(value: unknown, expected: string) {
    it(`shows ${JSON.stringify(value)} as ${expected}`, () => assert.equal(textOf(dataMarkup(value)), expected));
  }

  for (const value of ['text', 1.5, null, true, '//evil.example/', '/\\evil.example/', 'javascript:alert(1)'])
    check(value, String(value));
  check('https://desk.test is down', 'https://desk.test is down');
  check([], '<ol></ol>');
  check(['a', 'b'], '<ol><li>a</li><li>b</li></ol>');
  check({ a: { b: [1] } }, '<dl><dt>a</dt><dd><dl><dt>b</dt><dd><ol><li>1</li></ol></dd></dl></dd></dl>');
  check({ '<i>': '<script>' }, '<dl><dt>&#60;i&#62;</dt><dd>&#60;script&#62;</dd></dl>');
  check('https://desk.test/a?b=1&c', '<a href="https://desk.test/a?b=1&#38;c">https://desk.test/a?b=1&#38;c</a>');
  for (const path of ['/v1/hotels/', '/']) check(path, `<a href="${path}">${path}</a>`);
  check('/a "onclick=', '/a &#34;onclick=');
  check('/a"onclick=', '<a href="/a&#34;onclick=">/a&#34;onclick=</a>');

  it('has no tag from the value', () => {
    const tags = (markup: Markup) =>
      textOf(markup)
        .match(/<\/?[a-z!][^>]*>/g)
        ?.map((tag) => tag.replace(/ href=".*"/, '')) ?? [];
    const known = new Set(tags(dataMarkup(['x', '/x', { a: '1' }])));
    fc.assert(
      fc.property(fc.string(), (text) => {
        const found = tags(dataMarkup([text, { [text]: text }]));
        assert.deepEqual(
          found.filter((tag) => !known.has(tag)),
          [],
        );
      }),
    );
  });
});

describe('proseMarkup', () => {
  function check(text: string, expected: string) {
    it(`shows ${JSON.stringify(text)} as ${expected}`, () => assert.equal(textOf(proseMarkup(text)), expected));
  }

  check('', '');
  check('one\n\n\ntwo', '<p>one</p>\n<p>two</p>');
  check('some:\n\n- a\n- `b`', '<p>some:</p>\n<ul><li>a</li><li><code>b</code></li></ul>');
  check('`<a>` & b', '<p><code>&#60;a&#62;</code> &#38; b</p>');

  it('writes a phrase without a paragraph', () => {
    assert.equal(textOf(phraseMarkup('see `<a>`')), 'see <code>&#60;a&#62;</code>');
  });
});

describe('htmlDocument', () => {
  const main = html`<p>here</p>`;

  it('is a whole page with its heading in the content', () => {
    const page = htmlDocument({ title: 'a < b', style: 'p>a{margin:0}', main });
    assert.ok(page.startsWith('<!doctype html>\n<html lang="en">'));
    assert.ok(page.includes('<title>a &#60; b</title>'));
    assert.ok(page.includes('<style>p>a{margin:0}</style>'));
    assert.ok(page.includes('<main>\n<h1>a &#60; b</h1>\n<p>here</p>\n</main>'));
  });

  it('has a header, style sheets and a script on request', () => {
    const parts = { stylesheets: ['a.css', 'b.css'], script: 'c.js', header: html`<nav></nav>` };
    const page = htmlDocument({ title: 'T', heading: 'H', main, ...parts });
    const links = '<link rel="stylesheet" href="a.css">\n<link rel="stylesheet" href="b.css">\n';
    assert.ok(page.includes(`${links}<script type="module" src="c.js"></script>\n</head>`));
    assert.match(page, /<a class="skip" href="#main">.*<h1>H<\/h1>\n<nav><\/nav>\n<\/header>\n<main id="main"/s);
  });
});

describe('pageHeaders', () => {
  const policyOf = (headers: Readonly<Record<string, string>> | undefined) =>
    headers?.['Content-Security-Policy'] ?? '';

  it('allow a style by its digest, and nothing else', () => {
    const digest = createHash('sha256').update('p{margin:0}').digest('base64');
    const policy = policyOf(pageHeaders({ style: 'p{margin:0}' }));
    assert.ok(policy.startsWith(`default-src 'none'; style-src 'sha256-${digest}'; `));
    assert.ok(!policy.includes('unsafe'));
  });

  it('allow the style of the plain page', () => {
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(htmlFormatter.format(1, 'T')) ?? [];
    assert.equal(policyOf(htmlFormatter.headers), policyOf(pageHeaders({ style })));
  });
});
