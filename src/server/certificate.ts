/** The certificate of the gateway's listener, and its reload. */
import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { loadTls, type Tls } from '#config';
import type { Setup } from './options.ts';

/** The certificate and key of the gateway's listener, which a reload replaces. Undefined for plain HTTP. */
export interface CurrentTls {
  current: Tls | undefined;
}

/** Returns when the certificate expires, in milliseconds since the epoch. Undefined for plain HTTP. */
export function expiryOf({ current }: CurrentTls): number | undefined {
  return current && new X509Certificate(current.cert).validToDate.getTime();
}

/**
 * Returns a function that reads certificate and key again, and passes them to `replace`, which makes them the current
 * ones, if they have changed. If they are unusable, it logs an error and keeps the current ones.
 */
export function createCertificateReload(
  setup: Setup,
  tls: Readonly<CurrentTls>,
  replace: (found: Tls) => Promise<void>,
): () => Promise<void> {
  let hasFailed = false;
  let last = Promise.resolve();

  async function reload(): Promise<void> {
    try {
      const found = await loadTls(setup.settings);
      // After a failure the log has to say that the files are right again, even if they are the ones in use.
      if (found === undefined || (isDeepStrictEqual(found, tls.current) && !hasFailed)) return;
      await replace(found);
      hasFailed = false;
      const certificate = new X509Certificate(found.cert);
      setup.logger.info({ validTo: certificate.validTo }, 'certificate reloaded');
      warnAboutDates(setup, certificate);
    } catch (err) {
      hasFailed = true;
      setup.logger.error({ err }, 'the certificate cannot be reloaded, so the current one stays in use');
    }
  }

  return function reloadInTurn() {
    // One at a time: if two overlapped, the one that read the older files could finish last.
    last = last.then(reload);
    return last;
  };
}

/** Warns about a certificate that clients reject because of its dates. */
export function warnAboutDates({ logger, clock }: Setup, certificate: X509Certificate): void {
  const { validFrom, validTo, validFromDate, validToDate } = certificate;
  const nowMs = clock();
  if (nowMs > validToDate.getTime())
    logger.warn({ validTo }, 'the certificate has expired, so clients reject it: renew it, then reload with SIGHUP');
  else if (nowMs < validFromDate.getTime())
    logger.warn(
      { validFrom },
      'the certificate is not valid yet, so clients reject it: check the clock of this machine',
    );
}
