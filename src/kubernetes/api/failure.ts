/** Failures of the API server, and what to do about each. */
import { gatewayApiGroup } from '#config';
import { codeOf, isMap, messageOf, truncate } from '#foundation';
import type { Connection } from './connection.ts';

/** A response of the API server that is no success, or an error event of a watch. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure';
  readonly status: number;
  /** Of the header Retry-After. */
  readonly retryAfterMs: number | undefined;

  /** `body` is the object `Status` of the response. */
  constructor(status: number, body: unknown, retryAfterMs?: number) {
    super(truncate(isMap(body) ? String(body['message']) : 'the response is not JSON', 300));
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** True if changes since the version that was asked for are not available any more, so that everything is listed again. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiFailure && (error.status === 410 || error.status === 504);
}

/** True if the server does not know the resource. */
export function isUnknownResource(error: unknown): boolean {
  return error instanceof ApiFailure && error.status === 404;
}

/** What cannot be read. */
export interface FailedResource {
  /** `mappings.gateway.local`, or `services` for the core. */
  readonly resource: string;
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined;
}

/** Describes a failure for a user, with what to do. */
export function describeFailure(
  error: unknown,
  { resource, namespace }: FailedResource,
  connection: Connection,
): string {
  if (!(error instanceof ApiFailure)) return messageOf(error);
  const { status, message } = error;
  if (status === 401)
    return `${connection.url} does not accept the credentials of ${connection.origin}: create a new token or certificate`;
  if (status === 403) {
    const role = namespace === undefined ? 'a ClusterRole' : `a Role of the namespace ${namespace}`;
    return `no permission (${message}): give get, list and watch on ${resource} in ${role}`;
  }
  if (status === 404)
    return `the API server does not know ${resource} any more: define it again, for example with ${definitionsOf(resource)}`;
  return `the API server responds with ${status}: ${message}`;
}

function definitionsOf(resource: string): string {
  const isOfGatewayApi = resource.endsWith(`.${gatewayApiGroup}`);
  return isOfGatewayApi ? 'standard-install.yaml of the Gateway API' : 'frontdesk crds | kubectl apply -f -';
}

const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY/;

/** The error of a request without a response. */
export function noAnswer(url: string, cause: unknown): Error {
  const code = codeOf(cause);
  const remedy = certificateCodes.test(code) ? ` (${code}): check certificate-authority and tls-server-name` : '';
  return new Error(`no answer from ${url}: ${messageOf(cause)}${remedy}`, { cause });
}
