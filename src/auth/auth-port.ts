/** The question "who is this?" and its answer: one port for the auth service in this process and the one across HTTP. */
import type { IncomingHttpHeaders } from 'node:http';

/** What the auth service is told of a request: its method, its original path and query, and its headers. */
export interface AuthRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/**
 * `allow`: headers to set on the routed request (lower-case names).
 * `deny`: what the client is told; without a body the gateway writes the error body of `status`.
 * `error`: no verdict could be had; `reason` is for the log, never for the client.
 */
export type AuthAnswer =
  | { readonly outcome: 'allow'; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly outcome: 'deny';
      readonly status: number;
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      readonly body?: Uint8Array;
    }
  | { readonly outcome: 'error'; readonly reason: string };

/** Answers at once when it can; never throws. */
export type AuthPort = (request: AuthRequest) => AuthAnswer | Promise<AuthAnswer>;
