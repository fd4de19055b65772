/** Tests the loading of the certificate and key for HTTPS, and its error messages. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadTls } from '#config';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { makeCertificate } from '../../support/wire/certificate.ts';

describe('loadTls', () => {
  const writeFiles = temporaryFiles();
  let tlsCert = '';
  let tlsKey = '';
  let other = '';

  before(async () => {
    const pem = '-----BEGIN CERTIFICATE-----\n';
    const key = '-----BEGIN PRIVATE KEY-----\n';
    const directory = await writeFiles({ 'cert.pem': pem, 'key.pem': key, 'other.pem': 's3cret' });
    [tlsCert = '', tlsKey = '', other = ''] = ['cert', 'key', 'other'].map((name) => join(directory, `${name}.pem`));
  });

  it('returns the text of both files', async function () {
    const directory = await writeFiles();
    const certificate = await makeCertificate(directory, 'IP:127.0.0.1');
    if (certificate === undefined) return this.skip();
    const { file, cert, key } = certificate;
    assert.deepEqual(await loadTls({ tlsCert: file, tlsKey: join(directory, 'key.pem') }), { cert, key });
  });

  it('returns undefined when neither is set, and names both settings when the pair is invalid', async () => {
    assert.equal(await loadTls({ tlsCert: undefined, tlsKey: undefined }), undefined);
    const message = /^Error: TLS_CERT and TLS_KEY cannot be used \(.*\): use a certificate chain/;
    await assert.rejects(loadTls({ tlsCert, tlsKey }), message);
  });

  it('names the setting when certificate and key are swapped', async () => {
    const message = /^Error: TLS_CERT=.*key\.pem contains no CERTIFICATE: use the file that contains it$/;
    await assert.rejects(loadTls({ tlsCert: tlsKey, tlsKey: tlsCert }), message);
  });

  it('names the setting and the file that is missing or not PEM, and does not show its contents', async () => {
    await assert.rejects(loadTls({ tlsCert, tlsKey: '/nowhere.pem' }), /cannot read TLS_KEY=\/nowhere\.pem \(ENOENT\)/);
    await assert.rejects(loadTls({ tlsCert: other, tlsKey }), ({ message }: Error) => {
      assert.match(message, /^TLS_CERT=.*other\.pem is not a PEM file/);
      return !message.includes('s3cret');
    });
  });
});
