/** Everything that a path can mean: its readings, and the bounds on their number. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { sanitisePath } from '#http';
import { createReadings, severalReadings } from '#routing';

const readingsOf = createReadings([]);

describe('the readings of a path', () => {
  const rows: Readonly<Record<string, readonly string[]>> = {
    '/admin/x': [
      '/ADMIN/x',
      '/admin%2Fx',
      '/admin%252fX',
      '/%2F/admin//x',
      '/admin;a=1/x',
      '/admin./x',
      '/admin%20/x.%20.',
      '/admin%3Ba/x',
      '/admin;a%2Fb/x',
      '/admin::$DATA/x',
      '/index.php/admin/x',
      '/admin/v1.CGI/x',
      '/admin/x%3F/y',
      '/;%2Fb/admin/x',
      '/admin/x%2523y',
      '/admin//y/x',
      '/%EF%BC%8Fadmin/x',
      '/ad%C2%ADmin/x',
      '/%20admin/%20x',
      '/%25u0061dmin/x',
      '/%C4%81dmin/x',
      '/adm%FFin/x',
      '/%E2%88%95admin/x',
      '/(S(1))/admin/x',
      '/admin/(A(b)S(1))/x',
      '/%2F/host/admin/x',
      '/%F8%80%80%81%81dmin/x',
      // The slash inside the parameter is only one for a later server.
      '/admin%C0%BBb%E2%88%95c/x',
      '/admin%C0%BBb%25u002Fc/x',
      '/admin;b%EF%BC%8Fc/x',
      // Only the second parameter is one before the first is decoded.
      '/a%3Bx.php;/admin/x',
      '/admin/x%3By%23z',
    ],
    '/admin': [
      '/%2541dmin',
      '/admin;',
      '/;/admin',
      '/.../admin',
      '/admin%3Bx=1',
      '/%C1%81dmin',
      '/Admin/',
      '/admin;/x;y/z',
    ],
    // The Kelvin sign, the long s, and the letters i with and without a dot.
    '/kiss': ['/%E2%84%AAISS', '/ki%C5%BFs', '/\xe2\x84\xaaiss', '/k%C4%B0ss', '/K%C4%B1ss'],
    '/cafe': ['/caf%C3%A9', '/CAF%C3%89', '/caf\xc3\x89'],
    '/': ['/;x', '/%2F', '/%3Fx', '/%23', '/%20'],
  };
  for (const [expected, paths] of Object.entries(rows))
    it(`include ${expected} for ${paths.join(' ')}`, () => {
      for (const path of paths) assert.ok(readingsOf(path)?.has(expected), `${path}: ${[...(readingsOf(path) ?? [])]}`);
    });

  it('are the path itself, and the path without a slash at its end, if nothing in it is ambiguous', () => {
    for (const path of ['/', '/a/b', '/.well-known/acme', '/a.b/c', '/a:b', '/a@b', '/v1.2/x_y-z~', "/!$&'()*+,="])
      assert.deepEqual([...(readingsOf(path) ?? [])], [path]);
    assert.deepEqual([...(readingsOf('/a/b/') ?? [])], ['/a/b/', '/a/b']);
    const parts = ['/', 'a', 'B', '.', '..', '%20', ';', ':', '$', '.php', '.Jsp', '\xe9', '%', '25', '2F', '~', '@'];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 8 }), (some) => {
        const path = sanitisePath(`/${some.join('')}`) ?? '';
        fc.pre(path !== '' && !severalReadings.test(path));
        assert.deepEqual(readingsOf(path), new Set([path, path.replace(/(?<=.)\/$/, '')]));
        // A declared reading makes it apply all steps.
        assert.deepEqual(createReadings(['plus'])(path), readingsOf(path));
      }),
      { numRuns: 1000 },
    );
  });

  it('have readings that are among them', () => {
    for (const path of ['/;%2Fb/admin/x', '/A%252F;x/b%3Fc', '/index.php/%C3%89. /x::$DATA'])
      for (const reading of readingsOf(path) ?? [])
        for (const next of readingsOf(reading) ?? [])
          assert.ok(readingsOf(path)?.has(next), `${path} ${reading} ${next}`);
  });

  it('are few for the paths that clients send', () => {
    const counts = {
      '/caf%C3%A9/a%20b': 3,
      '/@scope%2Fpkg': 3,
      '/a;b.txt': 2,
      '/Open': 2,
      '/wiki/What%3F': 4,
      '/img/https%3A%2F%2Fcdn.example%2Fa%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg%2Fh.jpg%3Fw%3D1': 128,
    };
    for (const [path, most] of Object.entries(counts)) {
      const { size = Number.POSITIVE_INFINITY } = readingsOf(path) ?? {};
      assert.ok(size <= most, `${path}: ${size}`);
    }
  });

  it('are not listed if there are too many, or if one has a dot segment', () => {
    assert.equal(readingsOf(`/${'%2F;x%3F'.repeat(20)}`), undefined);
    assert.equal(readingsOf(`/${'A'.repeat(40_000)}`), undefined);
    for (const path of ['/x/%E2%80%A5/admin', '/x/%EF%BC%8E%EF%BC%8E/admin', '/x/.%E2%80%8B./admin'])
      assert.equal(readingsOf(path), undefined, path);
  });

  it('include those of a service that ignores extensions or reads a plus sign as a space, if it is declared', () => {
    assert.ok(createReadings(['extension'])('/admin.json')?.has('/admin'));
    assert.ok(createReadings(['plus'])('/admin+')?.has('/admin'));
    assert.deepEqual([readingsOf('/admin.json')?.size, readingsOf('/admin+')?.size], [1, 1]);
  });
});
