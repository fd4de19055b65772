/** Sends a write to the API server, and logs why it fails once, with the rule of RBAC that is missing. */
import { createOutageLog, isMap, type Logger, messageOf, type OutageLog, truncate } from '#foundation';
import type { ApiResponse, KubernetesApi } from '../api/client.ts';

/** The part of the API client that writes need. */
export type WriteApi = Pick<KubernetesApi, 'request'>;

export interface WriteRequest {
  readonly verb: 'create' | 'get' | 'patch';
  /** The API group, which is empty for the core. */
  readonly group: string;
  /** `events`, `mappings/status` */
  readonly resource: string;
  readonly path: string;
  readonly body?: object;
  /** A patch applies to this version of the object only. */
  readonly resourceVersion?: string;
}

/**
 * `exists` if another replica has created the same. `changed` if the object has another version now. `gone` if the object or its namespace has been deleted. `refused` if
 * it is of no use to try again soon, and `later` if the API server cannot take it now.
 */
export interface WriteResult {
  readonly result: 'ok' | 'exists' | 'changed' | 'gone' | 'refused' | 'later';
  readonly body?: unknown;
  /** When the API server wants the write again. */
  readonly retryAfterMs?: number | undefined;
}

export interface Writer {
  /** Never rejects. */
  readonly send: (request: WriteRequest) => Promise<WriteResult>;
}

export interface WriterOptions {
  readonly api: WriteApi;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Returns milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
  /** How long nothing is sent that the API server has forbidden, in milliseconds. */
  readonly forbiddenMs: number;
}

const methods = { create: 'POST', get: 'GET', patch: 'PATCH' } as const;

export function createWriter({ api, logger, clock = () => performance.now(), forbiddenMs }: WriterOptions): Writer {
  const logs = new Map<string, OutageLog>();
  const forbiddenUntilMs = new Map<string, number>();

  function logOf({ group, resource }: WriteRequest): OutageLog {
    const name = group === '' ? resource : `${resource} of ${group}`;
    const log = logs.get(name) ?? createOutageLog({ logger, clock, ended: `the API server takes our ${name} again` });
    logs.set(name, log);
    return log;
  }

  async function send(request: WriteRequest): Promise<WriteResult> {
    const { verb, resource, path } = request;
    if (clock() < (forbiddenUntilMs.get(`${verb} ${resource}`) ?? 0)) return { result: 'refused' };
    const contentType = verb === 'patch' ? 'application/merge-patch+json' : 'application/json';
    try {
      const response = await api.request(methods[verb], path, bodyOf(request), contentType);
      const result = resultOf(request, response);
      if (result === 'refused' || result === 'later') fail(request, response);
      else logOf(request).answered();
      return { result, body: response.body, retryAfterMs: response.retryAfterMs };
    } catch (err) {
      logOf(request).failed({ err }, failureOf(request));
      return { result: 'later' };
    }
  }

  function fail(request: WriteRequest, { status, body }: ApiResponse): void {
    const isForbidden = status === 403;
    if (isForbidden) forbiddenUntilMs.set(`${request.verb} ${request.resource}`, clock() + forbiddenMs);
    const reason = truncate(isMap(body) ? String(body['message']) : messageOf(body), 300);
    const remedy = isForbidden ? `: ${ruleFor(request)}` : '';
    logOf(request).failed({ status, reason }, `${failureOf(request)}${remedy}`);
  }

  return { send };
}

function bodyOf({ body, resourceVersion }: WriteRequest): object | undefined {
  return resourceVersion === undefined ? body : { ...body, metadata: { resourceVersion } };
}

function resultOf({ verb, resourceVersion }: WriteRequest, { status, body }: ApiResponse): WriteResult['result'] {
  if (status < 300) return 'ok';
  if (status === 404 || (status === 403 && isTerminating(body))) return 'gone';
  if (status === 409 && verb === 'create') return 'exists';
  if (status === 409 && resourceVersion !== undefined) return 'changed';
  return status === 409 || status === 401 || status === 429 || status >= 500 ? 'later' : 'refused';
}

/** Nothing can be created in a namespace that is being deleted. */
function isTerminating(body: unknown): boolean {
  const details = isMap(body) ? body['details'] : undefined;
  const causes = isMap(details) ? details['causes'] : undefined;
  return Array.isArray(causes) && causes.some((one) => isMap(one) && one['reason'] === 'NamespaceTerminating');
}

function failureOf({ verb, resource }: WriteRequest): string {
  const subject =
    resource === 'events' ? 'Events of the objects of the cluster' : `The status of ${resource.replace('/status', '')}`;
  return `${subject} cannot be ${verb === 'get' ? 'read' : 'written'}; everything else goes on`;
}

function ruleFor({ verb, group, resource }: WriteRequest): string {
  return `give frontdesk's service account the rule { apiGroups: ['${group}'], resources: ['${resource}'], verbs: ['${verb}'] } in its ClusterRole`;
}
