/** Accepts or refuses the objects of a cluster: the records, and with KUBERNETES_GATEWAY_API the routes of Gateways. */
import {
  type AcceptedObjects,
  byAge,
  createGatewayApi,
  createObjectAcceptance,
  type DesiredStatus,
  type Settings,
  type UnservedCounts,
} from '#config';
import type { ClusterObjects } from '#kubernetes';
import type { Setup } from '../options.ts';
import { checkServiceRoles } from '../record-services.ts';
import { createTakeObjects, type UseObjects } from './usable-objects.ts';

export interface ClusterAcceptance {
  /**
   * Must not be called concurrently. `use` takes them into use. @default does nothing, because the process is dormant
   */
  readonly accept: (objects: ClusterObjects, use?: UseObjects) => Promise<Acceptance>;
}

export interface Acceptance {
  readonly accepted: AcceptedObjects;
  /** What the objects of the Gateway API have to say. */
  readonly statuses: readonly DesiredStatus[];
  /** Undefined without KUBERNETES_GATEWAY_API. */
  readonly unserved: UnservedCounts | undefined;
}

type AcceptanceParts = Pick<Setup, 'settings' | 'has' | 'services' | 'configDirectory'>;

export function createClusterAcceptance(parts: AcceptanceParts, trusted: readonly string[]): ClusterAcceptance {
  const { gatewayDomain, strictPaths, kubernetesGatewayApi } = parts.settings;
  const addresses = parts.settings.kubernetesGatewayAddresses;
  const gatewayApi = kubernetesGatewayApi
    ? createGatewayApi({ trusted, addresses, ports: servedPorts(parts.settings) })
    : undefined;
  const acceptance = createObjectAcceptance({
    gatewayDomain,
    strictPaths,
    trusted,
    mappingsMax: parts.settings.kubernetesMappingsMax,
    directory: parts.configDirectory ?? '.',
    findUnservable: (lists) => checkServiceRoles(parts, lists),
    renewRoute: gatewayApi?.renew,
  });
  const take = createTakeObjects(acceptance);
  if (gatewayApi === undefined)
    return {
      async accept({ records }, use = unused) {
        return { accepted: await take(records, use), statuses: [], unserved: undefined };
      },
    };
  return {
    async accept({ records, gatewayApi: objects }, use = unused) {
      const { routes, certificates, notices, unserved, statusesWith } = await gatewayApi.resolve(objects, records);
      const whole = (found: AcceptedObjects) => ({ ...found, certificates, notices: [...found.notices, ...notices] });
      const accepted = await take([...records, ...routes].sort(byAge), (found) => use(whole(found)));
      return { accepted: whole(accepted), statuses: statusesWith(accepted.verdicts), unserved };
    },
  };
}

const unused: UseObjects = async () => undefined;

/** The usual ports of clients, which a Service or a load balancer leads to ours, and our own. */
function servedPorts({ port, tlsPort }: Pick<Settings, 'port' | 'tlsPort'>) {
  return { http: [80, port], https: tlsPort === undefined ? [] : [443, tlsPort] };
}

/** `ownNamespace` is that of frontdesk itself. */
export function trustedNamespaces(
  { kubernetesTrustedNamespaces }: Pick<Settings, 'kubernetesTrustedNamespaces'>,
  ownNamespace: string,
): readonly string[] {
  return [...new Set([ownNamespace, ...kubernetesTrustedNamespaces])];
}
