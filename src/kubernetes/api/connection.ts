/** Where an API server is, and who calls it. */

/** How to reach an API server. */
export interface Connection {
  /** Without a slash at the end. */
  readonly url: string;
  /** The namespace of the pod or of the context. */
  readonly namespace: string;
  /** Where the credentials come from, for messages: `the service account of this pod`. */
  readonly origin: string;
  /** Reads the credentials again, because files of tokens and certificates are replaced before they expire. */
  readonly credentials: () => Promise<Credentials>;
}

/** The options of `node:https`, and a bearer token. */
export interface Credentials {
  readonly token?: string | undefined;
  /** Undefined for the certificate authorities that Node trusts. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name in the server's certificate, if it is not that of the URL. */
  readonly servername?: string | undefined;
  readonly rejectUnauthorized: boolean;
}
