/** The certificates of a cluster: taken into use with its records, and reported when they expire. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { loadTls, type ServedCertificate, type Tls } from '#config';
import { type FrontdeskOptions, resolveOptions } from '../../../src/server/options.ts';
import { certificatesOf, createLiveCertificates } from '../../../src/server/tls/certificates.ts';
import { type LogLine, recordingLogger } from '../../support/edge.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

describe('the certificates of a cluster', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let shop: Certificate;
  let soon: Certificate;

  before(async function () {
    const made = await makeCertificate(await writeFiles(), 'DNS:shop.example');
    if (made === undefined) return this.skip();
    shop = made;
    soon = (await makeCertificate(await writeFiles(), 'DNS:soon.example', { days: 3 })) ?? assert.fail();
  });

  const served = (name: string, { cert, key }: Certificate): ServedCertificate => {
    return { name: `Secret shop/${name}`, cert, key, hosts: [`${name}.example`] };
  };

  /** `deliver` is what the cluster does when it has changed. */
  async function watch(options: FrontdeskOptions = {}) {
    const log: LogLine[] = [];
    const setup = await resolveOptions({
      config: { records: [] },
      kubernetes: true,
      kubernetesGatewayApi: true,
      tlsPort: 0,
      logger: recordingLogger(log),
      ...options,
    });
    const tls = { current: await loadTls(setup.settings) };
    let certificates: readonly ServedCertificate[] | undefined;
    let afterReload: () => Promise<void> | void = () => assert.fail();
    const live = createLiveCertificates(setup, {
      tls,
      records: {
        current: () => ({ number: 1, hash: '', appliedAtMs: 0, configuration: setup.loaded.configuration }),
        certificates: () => certificates,
        afterReload: (listener) => {
          afterReload = listener;
        },
      },
    });
    servers.later(live.close);
    const replaced: Tls[] = [];
    await live.watch(async (found) => {
      replaced.push(found);
      tls.current = found;
    });
    return {
      live,
      log: () => log.splice(0).map(({ message = '' }) => message),
      names: () => certificatesOf(tls).map(({ name }) => name),
      replaced,
      async deliver(next: readonly ServedCertificate[]) {
        certificates = next;
        await afterReload();
      },
    };
  }

  it('are in use when a reload ends, and are replaced only if they have changed', async () => {
    const { deliver, names, replaced, log } = await watch();
    assert.deepEqual([names(), replaced, log()], [[], [], []]);
    await deliver([served('shop', shop), served('other', shop)]);
    assert.deepEqual(names(), ['Secret shop/shop', 'Secret shop/other']);
    await deliver([served('shop', shop), served('other', shop)]);
    assert.equal(replaced.length, 1);
    await deliver([{ ...served('shop', shop), hosts: undefined }]);
    assert.deepEqual([names(), replaced.length], [['Secret shop/shop'], 2]);
    await deliver([served('shop', shop), { ...served('shop', shop), hosts: undefined }]);
    await deliver([served('shop', shop)]);
    assert.equal(replaced.at(-1)?.fallback, undefined);
    assert.equal(replaced.length, 4);
    assert.deepEqual(new Set(log()), new Set(['certificates reloaded']));
  });

  it('are reported by their Secret before they expire', async () => {
    const { deliver, live, log } = await watch();
    await deliver([served('shop', shop), served('soon', soon)]);
    const [{ source, message, remedy } = assert.fail(), ...others] = live.notices();
    assert.deepEqual([source.file, others], ['Secret shop/soon', []]);
    assert.match(message, /^the certificate expires on .*, in 2 days$/);
    assert.equal(remedy, 'Renew it: the new one is used as soon as it is written.');
    assert.match(log().at(-1) ?? '', /^clients reject a certificate, or soon will:\n.*Secret shop\/soon/);
  });

  it('are missing only after the cluster has been read, and a notice says so', async () => {
    const { deliver, live } = await watch();
    assert.deepEqual(live.notices(), []);
    await deliver([]);
    const messages = live.notices().map(({ message }) => message);
    assert.deepEqual(messages, ['no listener of a Gateway has a certificate, so no client can connect at TLS_PORT']);
    await deliver([served('shop', shop)]);
    assert.deepEqual(live.notices(), []);
  });

  it('stay in use while the file of TLS_CLIENT_CA changes, and the other way round', async () => {
    const ca = (await makeCertificate(await writeFiles(), '')) ?? assert.fail();
    const next = (await makeCertificate(await writeFiles(), '')) ?? assert.fail();
    const { deliver, names, replaced, live } = await watch({ tlsClientCa: ca.file });
    await deliver([served('shop', shop)]);
    assert.equal(replaced.at(-1)?.clientCa, ca.cert);
    await writeFile(ca.file, next.cert);
    await live.reload();
    assert.deepEqual([names(), replaced.at(-1)?.clientCa], [['Secret shop/shop'], next.cert]);
    await writeFile(ca.file, 'nothing');
    await deliver([served('soon', soon)]);
    assert.deepEqual([names(), replaced.at(-1)?.clientCa], [['Secret shop/soon'], next.cert]);
    assert.equal(live.refused()[0]?.part, 'certificates');
  });

  it('are nothing to a process with TLS_DIR, whose files stay in use', async () => {
    const directory = await writeFiles();
    await makeCertificate(directory, 'DNS:a.example', { files: ['a.crt', 'a.key'] });
    const { live, names } = await watch({ kubernetesGatewayApi: false, tlsPort: undefined, tlsDir: directory });
    await live.reload();
    assert.deepEqual(names(), ['a.crt']);
  });
});
