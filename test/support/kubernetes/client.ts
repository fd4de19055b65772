/** A client of the Kubernetes API for tests: writes objects by kind, and creates namespaces, permissions and tokens. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { eventually } from '../waiting.ts';

/** An object of any kind. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMetadata;
  readonly [field: string]: unknown;
}

export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export interface ApiResponse {
  readonly status: number;
  /** The object of a JSON response, otherwise the text. */
  readonly body: unknown;
}

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export interface KubernetesClient {
  readonly request: (method: string, path: string, body?: object, contentType?: string) => Promise<ApiResponse>;
  /** Creates or replaces objects, like `kubectl apply --server-side`. Waits for a kind that was just defined. */
  readonly apply: (...objects: readonly KubernetesObject[]) => Promise<readonly KubernetesObject[]>;
  /** Merges `change` into an object. */
  readonly patch: (object: KubernetesObject, change: object) => Promise<KubernetesObject>;
  readonly get: (apiVersion: string, kind: string, name: string, namespace?: string) => Promise<KubernetesObject>;
  readonly list: (apiVersion: string, kind: string, namespace?: string) => Promise<readonly KubernetesObject[]>;
  readonly remove: (object: KubernetesObject) => Promise<void>;
  /** Creates a namespace with a new name, which begins with `prefix`, and returns the name. */
  readonly createNamespace: (prefix?: string) => Promise<string>;
  /** Gives a user these permissions in the whole cluster. Returns a function that withdraws them. */
  readonly grant: (user: string, ...rules: readonly Rule[]) => Promise<() => Promise<void>>;
  /** Creates a service account and a token for it, like the one that a pod gets. The user is `system:serviceaccount:<namespace>:<name>`. */
  readonly createServiceAccount: (
    namespace: string,
    name: string,
  ) => Promise<{ readonly createToken: () => Promise<RevocableToken> }>;
  readonly close: () => void;
}

export interface RevocableToken {
  readonly token: string;
  /** From now on, or some seconds later, the server responds with 401. */
  readonly revoke: () => Promise<void>;
}

export interface ApiClientOptions {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}

export function createApiClient({ url, ca, token }: ApiClientOptions): KubernetesClient {
  const agent = new Agent({ keepAlive: true, ca });
  const plurals = new Map<string, { readonly plural: string; readonly namespaced: boolean }>();

  async function request(method: string, path: string, body?: object, contentType = 'application/json') {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': contentType }) };
    const sent = httpsRequest(`${url}${path}`, { method, headers, agent, timeout: 30_000 });
    sent.end(body && JSON.stringify(body));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const isJson = answer.headers['content-type']?.includes('json') ?? false;
    const received = await text(answer);
    return { status: answer.statusCode ?? 0, body: isJson ? JSON.parse(received) : received };
  }

  async function call(method: string, path: string, body?: object, contentType?: string): Promise<KubernetesObject> {
    const answer = await request(method, path, body, contentType);
    return resultOf(method, path, answer.status, answer.body);
  }

  async function pathOf(apiVersion: string, kind: string, namespace = 'default', name?: string): Promise<string> {
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const key = `${apiVersion} ${kind}`;
    if (!plurals.has(key)) plurals.set(key, await eventually(() => pluralOf(base, kind), 50));
    const { plural, namespaced } = plurals.get(key) ?? { plural: kind, namespaced: true };
    return [base, ...(namespaced ? ['namespaces', namespace] : []), plural, ...(name ? [name] : [])].join('/');
  }

  async function pluralOf(base: string, kind: string) {
    const { resources } = (await call('GET', base)) as unknown as { resources: readonly ApiResource[] };
    const found = resources.find((one) => one.kind === kind && !one.name.includes('/'));
    if (found === undefined) throw new Error(`${base} has no kind ${kind}`);
    return { plural: found.name, namespaced: found.namespaced };
  }

  function placeOf({ apiVersion, kind, metadata }: KubernetesObject): Promise<string> {
    return pathOf(apiVersion, kind, metadata.namespace, metadata.name);
  }

  async function applyOne(object: KubernetesObject): Promise<KubernetesObject> {
    const path = `${await placeOf(object)}?fieldManager=test&force=true`;
    const { status, body } = await eventually(async () => {
      const answer = await request('PATCH', path, object, 'application/apply-patch+yaml');
      // Without a Status, the 404 means that the server does not serve the kind yet.
      if (answer.status === 404 && typeof answer.body === 'string') throw new Error(`PATCH ${path}: ${answer.body}`);
      return answer;
    }, 20);
    return resultOf('PATCH', path, status, body);
  }

  const apply = (...objects: readonly KubernetesObject[]) => Promise.all(objects.map(applyOne));
  const remove = async (object: KubernetesObject) => void (await call('DELETE', await placeOf(object)));

  async function createToken(namespace: string, account: string): Promise<RevocableToken> {
    const metadata = { name: `token-${randomUUID()}`, namespace };
    const secret = await applyOne({ apiVersion: 'v1', kind: 'Secret', metadata });
    const boundObjectRef = { kind: 'Secret', apiVersion: 'v1', name: metadata.name, uid: secret.metadata.uid };
    const created = await call('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { audiences: [], expirationSeconds: 3600, boundObjectRef },
    });
    const { status } = created as unknown as { status: { token: string } };
    return { token: status.token, revoke: () => remove(secret) };
  }

  return Object.freeze({
    request,
    apply,
    remove,
    patch: async (object: KubernetesObject, change: object) =>
      call('PATCH', await placeOf(object), change, 'application/merge-patch+json'),
    get: async (apiVersion: string, kind: string, name: string, namespace?: string) =>
      call('GET', await pathOf(apiVersion, kind, namespace, name)),
    async list(apiVersion: string, kind: string, namespace?: string) {
      const found = await call('GET', await pathOf(apiVersion, kind, namespace));
      return (found as unknown as { items: readonly KubernetesObject[] }).items;
    },
    async createNamespace(prefix = 'test') {
      const name = `${prefix}-${randomUUID().slice(0, 8)}`;
      await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      return name;
    },
    async grant(user: string, ...rules: readonly Rule[]) {
      const [role, binding] = permissionsOf(user, rules);
      await apply(role);
      await apply(binding);
      return async () => {
        await remove(binding);
        await remove(role);
      };
    },
    async createServiceAccount(namespace: string, name: string) {
      await apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } });
      return { createToken: () => createToken(namespace, name) };
    },
    close: () => agent.destroy(),
  });
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

function resultOf(method: string, path: string, status: number, body: unknown): KubernetesObject {
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
  return body as KubernetesObject;
}

function permissionsOf(user: string, rules: readonly Rule[]): readonly [KubernetesObject, KubernetesObject] {
  const apiGroup = 'rbac.authorization.k8s.io';
  const [apiVersion, metadata] = [`${apiGroup}/v1`, { name: `test-${randomUUID()}` }];
  return [
    { apiVersion, kind: 'ClusterRole', metadata, rules },
    {
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup, kind: 'ClusterRole', name: metadata.name },
      subjects: [{ apiGroup, kind: 'User', name: user }],
    },
  ];
}
