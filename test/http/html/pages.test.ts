/** Renders values as HTML without letting them inject markup. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { htmlDocument, htmlFormatter } from '#http';
import { dataMarkup } from '../../../src/http/html/pages.ts';

function markupOf(value: unknown): string {
  const page = htmlDocument({ title: '', main: dataMarkup(value) });
  return page.slice(page.indexOf('</h1>\n') + 6, page.indexOf('\n</main>'));
}

describe('dataMarkup', () => {
  function check(value: unknown, expected: string) {
    it(`renders ${JSON.stringify(value)} as ${expected}`, () =>
      assert.equal(markupOf(value).replaceAll('\n', ''), expected));
  }

  for (const value of ['text', 1.5, null, true, '//evil.example/', '/\\evil.example/', 'javascript:alert(1)'])
    check(value, String(value));
  check('https://desk.test is down', 'https://desk.test is down');
  check([], '<span class="minor">none</span>');
  check(['a', 'b'], '<ul class="bare"><li>a</li><li>b</li></ul>');
  const field = (name: string, text: string) => `<dl class="fields"><div><dt>${name}</dt><dd>${text}</dd></div></dl>`;
  check({ a: { b: 1 } }, field('a', field('b', '1')));
  const valued = (tag: string, text: string, raw: string) =>
    `${tag}${text}</${/\w+/.exec(tag)}> <span class="key">${raw}</span>`;
  const money = (amount: string, currency: string, shown: string) =>
    check(
      { price: { amount, currency } },
      field('price', valued(`<data value="${amount}">`, shown, `${amount} ${currency}`)),
    );
  money('1.00', 'EUR', '€1.00');
  money('1234567', 'JPY', '¥1,234,567');
  money('1234.500', 'KWD', 'KWD\u00a01,234.500');
  check({ price: { amount: 'much', currency: 'EUR' } }, field('price', 'much EUR'));
  const time = (text: string, shown: string) => check(text, valued(`<time datetime="${text}">`, shown, text));
  time('2026-12-17', 'Thu 17 Dec 2026');
  time('2026-11-26T01:52:52.525Z', 'Thu 26 Nov 2026, 01:52 UTC');
  time('2030-06-03T10:00:00+02:00', 'Mon 3 Jun 2030, 10:00 +02:00');
  for (const text of ['2026-02-31', '2026-13-01', 'on 2026-12-17', '20261217']) check(text, text);
  check({ '<i>': '<script>' }, field('&#60;i&#62;', '&#60;script&#62;'));
  check('https://desk.test/a?b=1&c', '<a href="https://desk.test/a?b=1&#38;c">https://desk.test/a?b=1&#38;c</a>');
  for (const path of ['/v1/hotels/', '/']) check(path, `<a href="${path}">${path}</a>`);
  check('/a "onclick=', '/a &#34;onclick=');
  check('/a"onclick=', '<a href="/a&#34;onclick=">/a&#34;onclick=</a>');

  it('renders a list of objects as a table whose rows link to their url', () => {
    const text = markupOf([
      { id: 1, price: { amount: '1.00', currency: 'EUR' }, url: '/a/1' },
      { id: 2, note: ['x'], url: '/a/2' },
    ]);
    const heads = Array.from(text.matchAll(/<th scope="col">(.*?)<\/th>/g), ([, name]) => name);
    assert.deepEqual(heads, ['id', 'price', 'note']);
    assert.ok(
      text.includes(
        '<th scope="row"><a href="/a/1">1</a></th><td class="short" data-label="price"><data value="1.00" title="1.00 EUR">€1.00</data></td>',
      ),
    );
    assert.ok(
      text.includes(
        '<td class="short" data-label="price"></td><td class="short" data-label="note"><ul class="bare"><li>x</li></ul></td>',
      ),
    );
  });

  it('never renders a tag that comes from the value', () => {
    const tags = (value: unknown) => markupOf(value).match(/<\/?[a-z!][^>]*>/g) ?? [];
    const shapeOf = (tag: string) => tag.replace(/ (?:class|href|data-label|datetime|title|value)="[^"]*"/g, '');
    const known = new Set([['x', '/x'], { a: '1' }, [{ a: { b: 1, c: 2, d: 3 } }]].flatMap(tags).map(shapeOf));
    fc.assert(
      fc.property(fc.string(), (text) => {
        const found = tags([[text, { [text]: text }], [{ [text]: { b: text, c: text, [text]: text } }]].flat(0));
        assert.deepEqual(
          found.map(shapeOf).filter((tag) => !known.has(tag)),
          [],
        );
      }),
    );
  });
});

describe('htmlFormatter', () => {
  const pageOf = (value: unknown) => htmlFormatter.format(value, 'T');

  it('includes the JSON, collapsed', () => {
    assert.match(
      pageOf({ a: '<' }),
      /<details class="raw"><summary>JSON<\/summary><pre><code>\{\n {2}&#34;a&#34;: &#34;&#60;/,
    );
  });

  it('shows the range of items of a collection and links to the other pages', () => {
    const items = [{ id: 1 }, { id: 2 }];
    const links = {
      self: '/a?offset=2',
      first: '/a?offset=0',
      prev: '/a?offset=0',
      next: '/a?offset=4',
      last: '/a?offset=2',
    };
    const text = pageOf({ items, offset: 2, limit: 2, total: 9, links });
    assert.ok(text.includes('<p class="hint">3 to 4 of 9</p>'));
    const found = Array.from(text.matchAll(/<a rel="(\w+)" href="([^"]*)"/g), ([, rel, href]) => `${rel} ${href}`);
    assert.deepEqual(found, ['first /a?offset=0', 'prev /a?offset=0', 'next /a?offset=4']);
  });

  it('links to each item of a collection by its url or else its id, unless an item has neither', () => {
    const rowsOf = (...items: object[]) => {
      const text = pageOf({ items, offset: 0, limit: 2, total: 2, links: { self: '/a/?sort=id' } });
      return Array.from(text.matchAll(/<th scope="row">(.*?)<\/th>/g), ([, cell]) => cell);
    };
    assert.deepEqual(rowsOf({ id: 1, a: 2 }, { id: '../b?', a: 2 }), [
      '<a href="/a/1">1</a>',
      '<a href="/a/..%2Fb%3F">../b?</a>',
    ]);
    assert.deepEqual(rowsOf({ id: 1, url: '/b/1' }), ['<a href="/b/1">1</a>']);
    assert.deepEqual(rowsOf({ id: 1, a: 2 }, { a: 2 }), ['1', 'undefined']);
  });

  it('says that a collection is empty', () => {
    const links = { self: '/a', first: '/a', last: '/a' };
    const text = pageOf({ items: [], offset: 0, limit: 2, total: 0, links });
    assert.ok(text.includes('There are none.') && !text.includes('<table') && !text.includes('<nav'));
  });
});
