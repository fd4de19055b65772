/** The certificate and key for HTTPS: both, neither, or a message that names the setting and the file. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadTls } from '#config';
import { temporaryFiles } from '../../support/temporary-files.ts';

describe('loadTls', () => {
  const writeFiles = temporaryFiles();
  const cert = '-----BEGIN CERTIFICATE-----\n';
  const key = '-----BEGIN PRIVATE KEY-----\n';
  let tlsCert = '';
  let tlsKey = '';
  let other = '';

  before(async () => {
    const directory = await writeFiles({ 'cert.pem': cert, 'key.pem': key, 'other.pem': 's3cret' });
    [tlsCert = '', tlsKey = '', other = ''] = ['cert', 'key', 'other'].map((name) => join(directory, `${name}.pem`));
  });

  it('returns the text of both files, or nothing when neither is set', async () => {
    assert.deepEqual(await loadTls({ tlsCert, tlsKey }), { cert, key });
    assert.equal(await loadTls({ tlsCert: undefined, tlsKey: undefined }), undefined);
  });

  it('names the setting and the file that is missing or no PEM, and does not show its text', async () => {
    await assert.rejects(loadTls({ tlsCert, tlsKey: '/nowhere.pem' }), /cannot read TLS_KEY=\/nowhere\.pem \(ENOENT\)/);
    await assert.rejects(loadTls({ tlsCert: other, tlsKey }), ({ message }: Error) => {
      assert.match(message, /^TLS_CERT=.*other\.pem is not a PEM file/);
      return !message.includes('s3cret');
    });
  });
});
