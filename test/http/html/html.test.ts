/** HTML templates that escape their values, and text in CommonMark as HTML. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { blockMarkup, html, htmlDocument, inlineMarkup, type Markup, pageHeaders } from '#http';
import { dataMarkup } from '../../../src/http/html/pages.ts';

function textOf(main: Markup): string {
  const page = htmlDocument({ title: '', main });
  return page.slice(page.indexOf('</h1>\n') + 6, page.indexOf('\n</main>'));
}

/** Decodes the numeric entities that we write. */
function readEntities(text: string): string {
  return text.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

describe('html', () => {
  function check(what: string, markup: Markup, expected: string) {
    it(`writes ${what}`, () => assert.equal(textOf(markup), expected));
  }

  check('a text with each special character escaped', html`${`<b> & "'`}`, '&#60;b&#62; &#38; &#34;&#39;');
  check('an entity as literal text', html`${'&lt;'}`, '&#38;lt;');
  check(
    'markup, numbers and lists unchanged',
    html`${html`<b>${'<'}</b>`}${0}${['a', html`<i>`]}`,
    '<b>&#60;</b>0a<i>',
  );
  check('undefined and false as nothing', html`a${undefined}${false}b`, 'ab');

  it('does not accept parsed JSON as markup', () => {
    const forged = JSON.parse('{"markup": "<script>", "Symbol(markup)": "<script>"}');
    assert.throws(() => html`${forged}`, TypeError);
    assert.ok(!textOf(dataMarkup(forged)).includes('<script>'));
  });

  it('never lets text open a tag or close an attribute, and preserves the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'<>&"\'ab; #') }), (text) => {
        const written = textOf(html`${text}`);
        assert.ok(!/[<>"']/.test(written));
        assert.equal(readEntities(written), text);
      }),
    );
  });
});

describe('blockMarkup and inlineMarkup', () => {
  function check(text: string, expected: string) {
    it(`renders ${JSON.stringify(text)} as ${expected}`, () => assert.equal(textOf(blockMarkup(text)), expected));
  }

  check('', '');
  check('one\n\n\ntwo', '<p>one</p>\n<p>two</p>');
  check('some:\n\n- a\n- `b`', '<p>some:</p>\n<ul><li>a</li><li><code>b</code></li></ul>');
  check('`<a>` & b', '<p><code>&#60;a&#62;</code> &#38; b</p>');

  it('renders a phrase without a paragraph', () => {
    assert.equal(textOf(inlineMarkup('see `<a>`')), 'see <code>&#60;a&#62;</code>');
  });
});

describe('htmlDocument', () => {
  const main = html`<p>here</p>`;

  it('renders a complete page with its heading in the content', () => {
    const page = htmlDocument({ title: 'a < b', main });
    assert.ok(page.startsWith('<!doctype html>\n<html lang="en">'));
    assert.ok(page.includes('<title>a &#60; b</title>'));
    assert.ok(page.includes('<main class="plain">\n<h1>a &#60; b</h1>\n<p>here</p>\n</main>'));
  });

  it('adds a header, style sheets and a script if given', () => {
    const parts = { stylesheets: ['a.css', 'b.css'], script: 'c.js' };
    const page = htmlDocument({ title: 'T', heading: 'H', main, header: html`<nav></nav>`, ...parts });
    const links = '<link rel="stylesheet" href="a.css">\n<link rel="stylesheet" href="b.css">\n';
    const script = '<script type="module" src="c.js"></script>\n';
    assert.ok(page.includes(`${links}${script}</head>`));
    assert.match(page, /<a class="skip" href="#main">.*<h1>H<\/h1>\n<nav><\/nav>\n<\/header>\n<main id="main"/s);
  });
});

describe('pageHeaders', () => {
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(htmlDocument({ title: 'T', main: html`` })) ?? [];
  const digest = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;
  const directives = (policy = '') => new Map(policy.split('; ').map((one) => [one.split(' ')[0], one] as const));

  it('allow the style of every page by its digest, and nothing else', () => {
    const policy = directives(pageHeaders()['Content-Security-Policy']);
    assert.equal(policy.get('style-src'), `style-src ${digest}`);
    assert.equal(policy.get('default-src'), "default-src 'none'");
    assert.equal(policy.get('script-src'), undefined);
  });

  it('allow files of the server with ownFiles', () => {
    const policy = directives(pageHeaders({ ownFiles: true })['Content-Security-Policy']);
    assert.equal(policy.get('style-src'), `style-src 'self' ${digest}`);
    assert.equal(policy.get('script-src'), "script-src 'self'");
  });
});
