/** The diagnostics as a page: everything on it, everything escaped, nothing from elsewhere. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { diagnosticsFormatter } from '../../src/diag/page.ts';
import { readDiagnostics } from '../../src/diag/snapshot.ts';
import { parts } from './diagnostics-parts.ts';

describe('the diagnostics page', () => {
  const page = diagnosticsFormatter.format(readDiagnostics(parts), 'diagnostics');

  it('shows routes, services, limits, errors and counts, each under its heading', () => {
    const headings = [...page.matchAll(/<h2>(.*?)<\/h2>/g)].map(([, text]) => text);
    assert.deepEqual(headings, [
      'Health',
      'Configuration errors',
      'Notices',
      'Routes, in the order in which they are tried',
      'Services',
      'Limits',
      'Auth answers',
      'Rate-limit answers',
    ]);
    for (const text of ['1.2.3', '61 s', '/v1/hotels', 'hotel.yaml:9', '10 per minute', 'http://hotel:80', '3000']) {
      assert.ok(page.includes(text), text);
    }
  });

  it('has as many cells in a row as its table has columns', () => {
    for (const [table] of page.matchAll(/<table>.*?<\/table>/gs)) {
      const columns = table.match(/<th /g)?.length;
      for (const [row] of table.matchAll(/<tr><td>.*?<\/tr>/gs)) assert.equal(row.match(/<td>/g)?.length, columns);
    }
  });

  it('leaves out a table that would be empty', () => {
    const configuration = { ...parts.configuration, errors: () => [], notices: () => [] };
    const empty = { ...parts, configuration, limits: () => [] };
    const text = diagnosticsFormatter.format(readDiagnostics(empty), 'diagnostics');
    assert.ok(
      !text.includes('<h2>Configuration errors') && !text.includes('<h2>Limits') && !text.includes('<h2>Notices'),
    );
  });

  it('escapes what the configuration says', () => {
    assert.ok(page.includes('Mapping &#60;car&#62;') && !page.includes('<car>'));
  });

  it('needs nothing from elsewhere: no script, no link, and the one style is the one that the policy allows', () => {
    assert.doesNotMatch(page, /<script|<link|<img|src=|https?:\/\/(?!hotel:80)/);
    const [, css = ''] = /<style>(.*?)<\/style>/s.exec(page) ?? [];
    const digest = createHash('sha256').update(css).digest('base64');
    assert.ok(diagnosticsFormatter.headers?.['Content-Security-Policy']?.includes(`'sha256-${digest}'`));
  });
});
