/** The certificates of the gateway's listener: followed, replaced without closing a connection, and reported. */
import { isDeepStrictEqual } from 'node:util';
import {
  allCertificates,
  type ConfigurationError,
  createFolderWatch,
  createQuietTimer,
  type FolderWatch,
  fileError,
  readTls,
  type ServedCertificate,
  type ServerCertificate,
  type Tls,
  tlsOf,
  tlsPlaces,
  usesTls,
} from '#config';
import type { Certificates, ServerTls } from '#http';
import type { Setup } from '../options.ts';
import {
  createRefusals,
  formatFirst,
  type LiveConfiguration,
  type OpenConfiguration,
  type Refused,
} from '../reload.ts';

/** What the gateway's listener uses for TLS, which a reload replaces. Undefined for plain HTTP. */
export interface CurrentTls {
  current: Tls | undefined;
}

export function certificatesOf({ current }: CurrentTls): readonly ServerCertificate[] {
  return current === undefined ? [] : allCertificates(current);
}

/** The options of a listener with this TLS. */
export function serverTls(tls: Tls, setup: Pick<Setup, 'settings'>): ServerTls {
  const { settings } = setup;
  const minVersion = settings.tlsMinVersion === '1.3' ? 'TLSv1.3' : 'TLSv1.2';
  return { ...servedBy(tls, setup), minVersion, isClientOptional: settings.tlsClientAuth === 'request' };
}

/**
 * Which clients get which certificate. Of those in files, the first one without TLS_CERT is for all others; of those of
 * Gateways, that of a listener without a hostname. A wildcard of a Gateway stands for several labels.
 */
export function servedBy(tls: Tls, { settings }: Pick<Setup, 'settings'>): Certificates {
  const { certificates, fallback, clientCa } = tls;
  if (settings.tlsPort === undefined)
    return { certificates: allCertificates(tls), fallback: fallback ?? certificates[0], clientCa };
  const ofListener = (host: string) => (host.startsWith('*') ? `*${host}` : host);
  return {
    certificates: certificates.map((one) => ({ ...one, hosts: one.hosts.map(ofListener) })),
    fallback,
    clientCa,
  };
}

export interface LiveCertificates {
  /** The files that cannot be used at present. At most one refusal. */
  readonly refused: () => readonly Refused[];
  /** The certificates that clients reject, or will soon. */
  readonly notices: () => readonly ConfigurationError[];
  /**
   * Starts watching the files, and warns once a day of what `notices` returns. `replace` makes others the current ones.
   */
  readonly watch: (replace: (found: Tls) => Promise<void>) => Promise<void>;
  /** Reads the files now, if they are watched, and takes those of the cluster. Resolves when they are in use. */
  readonly reload: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Of a thread, whose certificates the main thread watches, and of a process without any. */
export const unwatchedCertificates: LiveCertificates = Object.freeze({
  refused: () => [],
  notices: () => [],
  watch: async () => {},
  reload: async () => {},
  close: async () => {},
});

export interface LiveCertificatesParts {
  readonly tls: Readonly<CurrentTls>;
  /** Has the certificates of a cluster, if there is one. */
  readonly records: Pick<OpenConfiguration, 'current' | 'certificates' | 'afterReload'>;
  /** Called when `refused` or `notices` may have changed. @default does nothing */
  readonly onChange?: () => void;
}

export function createLiveCertificates(setup: Setup, parts: LiveCertificatesParts): LiveCertificates {
  const { settings, logger, clock } = setup;
  const { tls, records, onChange = () => {} } = parts;
  if (!usesTls(settings)) return unwatchedCertificates;
  const refusals = createRefusals(setup, () => records.current().number);
  const quiet = createQuietTimer(reload);
  // Those of listeners of Gateways come with the records of the cluster.
  const hasListeners = settings.tlsPort !== undefined;
  if (hasListeners) records.afterReload(reload);
  const notices = () => [
    ...certificateNotices(tls.current, settings.tlsDir, clock()),
    ...(hasListeners ? listenerNotices(records.certificates()) : []),
  ];
  const warn = createDailyWarning(setup, notices);
  let watching: (FolderWatch & { readonly replace: (found: Tls) => Promise<void> }) | undefined;
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();

  async function readNow(): Promise<void> {
    if (watching === undefined) return;
    await watching.refresh();
    const { tls: ofFiles, errors } = await readTls(settings, tls.current);
    const found = hasListeners ? tlsOf(records.certificates() ?? [], ofFiles, tls.current) : ofFiles;
    const isNew = !isSame(found, tls.current);
    if (isNew) await watching.replace(found);
    const areFixed = errors.length === 0 && refusals.errors().length > 0;
    refuse(errors);
    // After an error the log has to say that the files are right again, even if they are the ones in use.
    if (isNew || areFixed) logger.info({ certificates: allCertificates(found).length }, 'certificates reloaded');
    check();
  }

  function refuse(errors: readonly ConfigurationError[]): void {
    if (isDeepStrictEqual(errors, refusals.errors())) return;
    refusals.update(errors.length === 0 ? [] : [refusalOf(errors)]);
  }

  /** One at a time: if two overlapped, the one that read the older files could finish last. */
  function reload(): Promise<void> {
    last = last.then(readNow).catch((err) => logger.error({ err }, 'the certificates cannot be reloaded'));
    return last;
  }

  function check(): void {
    warn();
    onChange();
  }

  return Object.freeze({
    refused: refusals.current,
    notices,
    async watch(replace: (found: Tls) => Promise<void>) {
      const onError = (err: unknown) => logger.error({ err }, 'the certificates cannot be watched');
      const places = () => tlsPlaces(settings);
      watching = {
        ...createFolderWatch({ places, onChange: quiet.schedule, onError }),
        replace,
      };
      timer = setInterval(check, checkEveryMs).unref();
      // What has changed since the files were read at the start is read here.
      await reload();
    },
    reload,
    async close() {
      clearInterval(timer);
      quiet.cancel();
      await last;
      quiet.cancel();
      refusals.close();
      await watching?.close();
    },
  });
}

const checkEveryMs = 3_600_000;

/** Compares no contents: what has not changed consists of the same objects. */
function isSame(found: Tls, current: Tls | undefined): boolean {
  const partsOf = ({ certificates, fallback, clientCa }: Tls) => [fallback, clientCa, ...certificates];
  const [ours, theirs] = [partsOf(found), current === undefined ? [] : partsOf(current)];
  return ours.length === theirs.length && ours.every((one, index) => one === theirs[index]);
}

function refusalOf(errors: readonly ConfigurationError[]) {
  return { part: 'certificates', consequence: 'those that could be used last stay in use', errors } as const;
}

const dayMs = 86_400_000;

/** Authorities recommend to renew certificates of 90 days when 30 are left. */
const noticeMs = 30 * dayMs;

/** Reports certificates that clients reject because of their dates, and those that expire soon. */
export function certificateNotices(
  tls: Tls | undefined,
  tlsDir: string | undefined,
  nowMs: number,
): readonly ConfigurationError[] {
  if (tls === undefined) return [];
  const all = allCertificates(tls);
  if (all.length > 0 || tlsDir === undefined) return all.flatMap((one) => dateNotice(one, nowMs));
  const message = 'the directory has no certificate yet, so no client can connect with HTTPS';
  return [fileError(tlsDir, message, 'Write NAME.crt and NAME.key to it.')];
}

/** `served` is undefined before the cluster has been read. */
function listenerNotices(served: readonly ServedCertificate[] | undefined): readonly ConfigurationError[] {
  if (served?.length !== 0) return [];
  const message = 'no listener of a Gateway has a certificate, so no client can connect at TLS_PORT';
  return [fileError('<settings>', message, 'Add a listener with certificateRefs to a Gateway, or remove TLS_PORT.')];
}

function dateNotice({ file, validFromMs, validToMs }: ServerCertificate, nowMs: number): readonly ConfigurationError[] {
  const renew = 'Renew it: the new one is used as soon as it is written.';
  if (nowMs > validToMs)
    return [fileError(file, `the certificate has expired on ${dateOf(validToMs)}, so clients reject it`, renew)];
  if (nowMs < validFromMs) {
    const message = `the certificate is not valid yet, but from ${dateOf(validFromMs)}, so clients reject it`;
    return [fileError(file, message, 'Check the clock of this machine.')];
  }
  if (validToMs - nowMs > noticeMs) return [];
  const days = Math.floor((validToMs - nowMs) / dayMs);
  return [fileError(file, `the certificate expires on ${dateOf(validToMs)}, in ${days} days`, renew)];
}

function dateOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** Returns a function that logs the notices that it has not logged for a day. */
function createDailyWarning(
  { logger, clock }: Pick<Setup, 'logger' | 'clock'>,
  notices: () => readonly ConfigurationError[],
): () => void {
  let warnedAtMs: ReadonlyMap<string, number> = new Map();
  return function warn() {
    const nowMs = clock();
    // The number of days changes daily, which is no reason to warn twice on the same day.
    const keyOf = ({ source, message }: ConfigurationError) =>
      `${source.file} ${message.replace(/, in \d+ days$/, '')}`;
    const isDue = (notice: ConfigurationError) =>
      nowMs - (warnedAtMs.get(keyOf(notice)) ?? Number.NEGATIVE_INFINITY) >= dayMs;
    const found = notices();
    const due = found.filter(isDue);
    warnedAtMs = new Map(
      found.map((notice) => [keyOf(notice), due.includes(notice) ? nowMs : (warnedAtMs.get(keyOf(notice)) ?? nowMs)]),
    );
    if (due.length > 0)
      logger.warn({ certificates: due.length }, `clients reject a certificate, or soon will:\n${formatFirst(due)}`);
  };
}

/** Adds what is wrong with the certificates to what is wrong with the records. */
export function withCertificates<Live extends LiveConfiguration>(
  configuration: Live,
  certificates: Pick<LiveCertificates, 'refused' | 'notices'>,
): Live {
  const { refused, errors, notices } = configuration;
  return {
    ...configuration,
    refused: () => [...refused(), ...certificates.refused()],
    errors: () => [...errors(), ...certificates.refused().flatMap((one) => one.errors)],
    notices: () => [...notices(), ...certificates.notices()],
  };
}
