/** The TLS of a listener: chooses a certificate by the host that the client asks for, and verifies clients' own. */
import { constants } from 'node:crypto';
import type { SecureContext, SecureContextOptions, TlsOptions } from 'node:tls';
import { createBoundedMap } from '#foundation';

/** In PEM format. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /**
   * The hosts that it is for, in lower case: `shop.example`; `*.shop.example`, in which `*` stands for one label (RFC 6125
   * section 6.4.3); or `**.shop.example`, for one or several.
   */
  readonly hosts: readonly string[];
}

export interface Certificates {
  /** If several are for the same host, the first one is used. */
  readonly certificates: readonly Certificate[];
  /** For clients that ask for no host, or for one that has no certificate. @default none: they cannot connect */
  readonly fallback?: Certificate | undefined;
  /** The authorities of clients' certificates. Undefined if clients are asked for none. */
  readonly clientCa?: string | undefined;
}

export interface ServerTls extends Certificates {
  /** @default 'TLSv1.2' */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  /** Whether a client without a valid certificate may connect. Has no effect without `clientCa`. @default false */
  readonly isClientOptional?: boolean | undefined;
}

export interface TlsContexts {
  /** For `https.createServer`. */
  readonly options: TlsOptions;
  /** Makes new connections use these certificates. Returns the options for clients that ask for no known host. */
  readonly replace: (next: Certificates) => SecureContextOptions;
}

/** One connection could make the server repeat the handshake, which costs it more than the client. */
const noRenegotiation = constants.SSL_OP_NO_RENEGOTIATION;

/** A context has 36 KiB, and creating one takes 0.3 ms, less than a handshake. */
const contextsMax = 1000;

/**
 * Creates a context with the first handshake that needs it. Each has one certificate: Node would use only one of several
 * for a host (nodejs/node#54235).
 */
export async function createTlsContexts(tls: ServerTls): Promise<TlsContexts> {
  const { createSecureContext } = await import('node:tls');
  const { minVersion = 'TLSv1.2', isClientOptional = false } = tls;
  let byHost: ReadonlyMap<string, Certificate> = new Map();
  let clientCa: string | undefined;
  let contexts = createBoundedMap<Certificate, SecureContext>(contextsMax);

  function optionsOf(certificate: Certificate | undefined): SecureContextOptions {
    return {
      minVersion,
      ...(certificate !== undefined && { cert: certificate.cert, key: certificate.key }),
      ...(clientCa === undefined
        ? { secureOptions: noRenegotiation }
        : // A resumed session would keep what was verified earlier, also after another authority has taken its place.
          { ca: clientCa, secureOptions: noRenegotiation | constants.SSL_OP_NO_TICKET }),
    };
  }

  function contextFor(host: string): SecureContext | undefined {
    const [certificate] = namesFor(host).flatMap((name) => byHost.get(name) ?? []);
    return certificate && contexts.getOrCreate(certificate, () => createSecureContext(optionsOf(certificate)));
  }

  function replace(next: Certificates): SecureContextOptions {
    byHost = certificatesByHost(next.certificates);
    clientCa = next.clientCa;
    contexts = createBoundedMap(contextsMax);
    return optionsOf(next.fallback);
  }

  const ofClients = tls.clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: !isClientOptional };
  return {
    replace,
    options: {
      ...replace(tls),
      ...ofClients,
      SNICallback(host, done) {
        try {
          done(null, contextFor(host.toLowerCase()));
        } catch (error) {
          // Ends the connection. Thrown here, it would end the process.
          done(error instanceof Error ? error : new Error(String(error)));
        }
      },
    },
  };
}

function certificatesByHost(certificates: readonly Certificate[]): ReadonlyMap<string, Certificate> {
  return new Map(certificates.toReversed().flatMap((one) => one.hosts.map((host) => [host, one])));
}

/** A host has at most this many characters (RFC 1035 section 2.3.4). */
const hostLengthMax = 253;

/** The names under which a host may be listed, the most specific first: itself, `*.shop.example`, `**.shop.example`. */
export function namesFor(host: string): readonly string[] {
  if (host.length > hostLengthMax) return [];
  const labels = host.split('.');
  const above = labels.slice(1).map((_, index) => labels.slice(index + 1).join('.'));
  return [host, ...above.slice(0, 1).map((domain) => `*.${domain}`), ...above.map((domain) => `**.${domain}`)];
}
