/** Reading the certificate of TLS_CERT and TLS_KEY. */
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

  it('returns the text of both files, the hosts of the certificate, and when it expires', async function () {
    const certificate = await makeCertificate(await writeFiles(), 'DNS:A.example,DNS:*.b.example,IP:127.0.0.1');
    if (certificate === undefined) return this.skip();
    const { file, keyFile, cert, key } = certificate;
    const { fallback, certificates } = (await loadTls({ tlsCert: file, tlsKey: keyFile })) ?? {};
    assert.deepEqual(certificates, []);
    const { validFromMs, validToMs, ...rest } = fallback ?? {};
    assert.deepEqual(rest, { name: 'TLS_CERT', file, cert, key, hosts: ['a.example', '*.b.example'] });
    assert.equal(((validToMs ?? 0) - (validFromMs ?? 0)) / 86_400_000, 90);
  });

  it('returns undefined when neither is set, and names both settings when the pair is invalid', async () => {
    assert.equal(await loadTls({ tlsCert: undefined, tlsKey: undefined }), undefined);
    const message = /TLS_CERT and TLS_KEY cannot be used \(.*\)\n {4}Use a certificate chain/;
    await assert.rejects(loadTls({ tlsCert, tlsKey }), message);
  });

  it('names the setting when certificate and key are swapped', async () => {
    const message = /key\.pem {2}TLS_CERT contains no CERTIFICATE\n {4}Use the file that contains it\.$/;
    await assert.rejects(loadTls({ tlsCert: tlsKey, tlsKey: tlsCert }), message);
  });

  it('names the setting and the file that is missing or not PEM, and does not show its contents', async () => {
    await assert.rejects(
      loadTls({ tlsCert, tlsKey: '/nowhere.pem' }),
      /nowhere\.pem {2}TLS_KEY cannot be read \(ENOENT\)/,
    );
    await assert.rejects(loadTls({ tlsCert: other, tlsKey }), ({ message }: Error) => {
      assert.match(message, /other\.pem {2}TLS_CERT is not a PEM file/);
      return !message.includes('s3cret');
    });
  });
});
