/** Certificates of a cluster: what is wrong with a Secret, and which clients get which certificate. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { allCertificates, certificateFault, type ServedCertificate, tlsOf } from '#config';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

describe('certificates of a cluster', () => {
  const writeFiles = temporaryFiles();
  let shop: Certificate;
  let other: Certificate;
  let encrypted = '';
  let old = '';
  before(async function () {
    const make = async (names: string) => makeCertificate(await writeFiles(), names);
    const made = [await make('DNS:shop.example,DNS:*.shop.example'), await make('DNS:other.example')];
    if (made[0] === undefined || made[1] === undefined) return this.skip();
    [shop, other] = [made[0], made[1]];
    const run = async (...args: readonly string[]) => (await promisify(execFile)('openssl', args)).stdout;
    encrypted = await run('pkcs8', '-topk8', '-in', shop.keyFile, '-passout', 'pass:secret');
    old = await run('ec', '-in', shop.keyFile, '-aes128', '-passout', 'pass:secret');
  });

  describe('certificateFault', () => {
    it('is undefined for a certificate with its key, and for a chain', () => {
      assert.equal(certificateFault(shop.cert, shop.key), undefined);
      assert.equal(certificateFault(`${shop.cert}${other.cert}`, shop.key), undefined);
    });

    for (const [what, pair, expected] of [
      ['no certificate', () => ['Hello', shop.key], 'there is no certificate in PEM format'],
      ['nothing', () => ['', ''], 'there is no certificate in PEM format'],
      ['a key instead', () => [shop.key, shop.key], 'there is no certificate in PEM format'],
      ['no key', () => [shop.cert, 'Hello'], 'there is no private key in PEM format'],
      ['a certificate instead of the key', () => [shop.cert, shop.cert], 'there is no private key in PEM format'],
      ['the key of another one', () => [shop.cert, other.key], 'the private key does not match the certificate'],
      ['an encrypted key', () => [shop.cert, encrypted], 'the private key is encrypted'],
      ['an encrypted key in the old format', () => [shop.cert, old], 'the private key is encrypted'],
      ['too much', () => [shop.cert + other.cert.repeat(2000), shop.key], 'there are more than 1048576 bytes'],
      [
        'a certificate that is no base64',
        () => [shop.cert.replace(/\n.{8}/, '\n????????'), shop.key],
        /^it cannot be used \(bad (?:base64 decode|end line)\)$/,
      ],
      [
        'a certificate that is cut off',
        () => [`${shop.cert.split('\n').slice(0, 4).join('\n')}\n-----END CERTIFICATE-----\n`, shop.key],
        /^it cannot be used \([a-z\d ]+\)$/,
      ],
      [
        'a chain that is broken after the certificate',
        () => [`${shop.cert}${other.cert.replace(/\n.{8}/, '\n????????')}`, shop.key],
        /^it cannot be used \(bad (?:base64 decode|end line)\)$/,
      ],
    ] as const)
      it(`says what is wrong with ${what}`, () => {
        const [cert = '', key = ''] = pair();
        const fault = certificateFault(cert, key);
        if (typeof expected === 'string') assert.equal(fault, expected);
        else assert.match(fault ?? '', expected);
      });
  });

  const served = (name: string, { cert, key }: Certificate, ...hosts: readonly string[]): ServedCertificate => {
    return { name: `Secret shop/${name}`, cert, key, hosts: hosts.length === 0 ? undefined : hosts };
  };
  const none = { certificates: [], fallback: undefined, clientCa: undefined };

  describe('tlsOf', () => {
    it('has each certificate with the hosts of its listeners and the dates that it is valid', () => {
      const { certificates, fallback } = tlsOf([served('a', shop, 'shop.example', '*.eu.example')], none);
      const [{ name, file, hosts, validFromMs, validToMs } = assert.fail()] = certificates;
      assert.deepEqual([name, file], ['Secret shop/a', 'Secret shop/a']);
      assert.deepEqual(hosts, ['shop.example', '*.eu.example']);
      assert.ok(validFromMs <= Date.now() && validToMs > Date.now());
      assert.equal(fallback, undefined);
    });

    it('has the first one of a listener without a hostname for all other clients, with the hosts in the certificate', () => {
      const all = [served('a', shop, 'a.example'), served('b', shop), served('c', other)];
      const { certificates, fallback } = tlsOf(all, none);
      assert.deepEqual(
        certificates.map(({ name }) => name),
        ['Secret shop/a'],
      );
      assert.deepEqual([fallback?.name, fallback?.hosts], ['Secret shop/b', ['shop.example', '*.shop.example']]);
    });

    it('has a Secret of several listeners once', () => {
      const all = [served('a', shop, 'a.example'), served('a', shop, '*.example', 'a.example'), served('a', shop)];
      const tls = tlsOf(all, none);
      assert.deepEqual(tls.certificates[0]?.hosts, ['a.example', '*.example']);
      assert.equal(tls.fallback, tls.certificates[0]);
      assert.equal(allCertificates(tls).length, 1);
    });

    it('has the objects of before for what has not changed', () => {
      const clientCa = other.cert;
      const before = tlsOf([served('a', shop, 'a.example'), served('b', other)], { clientCa });
      const same = tlsOf([served('a', shop, 'a.example'), served('b', other)], { clientCa }, before);
      assert.equal(same.certificates[0], before.certificates[0]);
      assert.equal(same.fallback, before.fallback);
      assert.equal(same.clientCa, clientCa);
      const next = tlsOf([served('a', other, 'a.example'), served('b', other, 'b.example')], { clientCa }, before);
      for (const [index, one] of [before.certificates[0], before.fallback].entries())
        assert.notEqual(next.certificates[index], one);
      assert.equal(next.certificates[0]?.cert, other.cert);
    });
  });
});
