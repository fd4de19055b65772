/** Accepts or refuses the objects of a cluster: the records, and with KUBERNETES_GATEWAY_API the routes of Gateways. */
import {
  type AcceptedObjects,
  byAge,
  createGatewayApi,
  createObjectAcceptance,
  type DesiredStatus,
  type Settings,
} from '#config';
import type { ClusterObjects } from '#kubernetes';
import type { Setup } from '../options.ts';
import { checkServiceRoles } from '../record-services.ts';

export interface ClusterAcceptance {
  /** Must not be called concurrently. `statuses`: what the objects of the Gateway API have to say. */
  readonly accept: (
    objects: ClusterObjects,
  ) => Promise<{ readonly accepted: AcceptedObjects; readonly statuses: readonly DesiredStatus[] }>;
}

type AcceptanceParts = Pick<Setup, 'settings' | 'has' | 'services' | 'configDirectory'>;

export function createClusterAcceptance(parts: AcceptanceParts, ownNamespace: string): ClusterAcceptance {
  const { gatewayDomain, strictPaths, kubernetesGatewayApi } = parts.settings;
  const trusted = trustedNamespaces(parts.settings, ownNamespace);
  const acceptance = createObjectAcceptance({
    gatewayDomain,
    strictPaths,
    trusted,
    directory: parts.configDirectory ?? '.',
    findUnservable: (lists) => checkServiceRoles(parts, lists),
  });
  if (!kubernetesGatewayApi)
    return { accept: async ({ records }) => ({ accepted: await acceptance.accept(records), statuses: [] }) };
  const addresses = parts.settings.kubernetesGatewayAddresses;
  const gatewayApi = createGatewayApi({ trusted, addresses, ports: servedPorts(parts.settings) });
  return {
    async accept({ records, gatewayApi: objects }) {
      const { routes, certificates, notices, statusesWith } = gatewayApi.resolve(objects, records);
      const accepted = await acceptance.accept([...records, ...routes].sort(byAge));
      return {
        accepted: { ...accepted, certificates, notices: [...accepted.notices, ...notices] },
        statuses: statusesWith(accepted.verdicts),
      };
    },
  };
}

/** The usual ports of clients, which a Service or a load balancer leads to ours, and our own. */
function servedPorts({ port, tlsPort }: Pick<Settings, 'port' | 'tlsPort'>) {
  return { http: [80, port], https: tlsPort === undefined ? [] : [443, tlsPort] };
}

/** `ownNamespace` is that of frontdesk itself, if it is known. */
export function trustedNamespaces(settings: AcceptanceParts['settings'], ownNamespace: string | undefined): string[] {
  return [...new Set([ownNamespace ?? [], settings.kubernetesTrustedNamespaces].flat())];
}
