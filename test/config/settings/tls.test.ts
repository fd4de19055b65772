/** The certificate and key for HTTPS: both, neither, or a message that names the setting and the file. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadTls } from '#config';

describe('loadTls', () => {
  let directory = '';
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'frontdesk-'));
  });
  after(() => rmSync(directory, { recursive: true }));

  function file(name: string, text: string): string {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  }

  it('gives nothing when nothing is set', async () => {
    assert.equal(await loadTls({ tlsCert: undefined, tlsKey: undefined }), undefined);
  });

  it('gives the text of both files', async () => {
    const tlsCert = file('cert.pem', '-----BEGIN CERTIFICATE-----\n');
    const tlsKey = file('key.pem', '-----BEGIN PRIVATE KEY-----\n');
    assert.deepEqual(await loadTls({ tlsCert, tlsKey }), {
      cert: '-----BEGIN CERTIFICATE-----\n',
      key: '-----BEGIN PRIVATE KEY-----\n',
    });
  });

  it('names the setting and the file that is not there', async () => {
    const tlsCert = file('cert.pem', '-----BEGIN CERTIFICATE-----\n');
    await assert.rejects(loadTls({ tlsCert, tlsKey: '/nowhere.pem' }), /cannot read TLS_KEY=\/nowhere\.pem \(ENOENT\)/);
  });

  it('names the setting and the file that is no PEM, and does not show its text', async () => {
    const tlsCert = file('cert.pem', 's3cret');
    await assert.rejects(loadTls({ tlsCert, tlsKey: tlsCert }), (error: Error) => {
      assert.match(error.message, /^TLS_CERT=.*cert\.pem is not a PEM file/);
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
  });
});
