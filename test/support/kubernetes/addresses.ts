/** EndpointSlices and addresses of Services for tests. */
import type { EndpointSliceObject, ServiceAddresses } from '#kubernetes';

interface SliceFields extends Partial<Pick<EndpointSliceObject, 'addressType' | 'endpoints' | 'ports'>> {
  readonly service?: string;
}

/** A slice of Service hotel in the namespace shop, whose pods listen on port 8080, which is named http. */
export function hotelSlice(
  name: string,
  {
    service = 'hotel',
    addressType = 'IPv4',
    endpoints = [],
    ports = [{ name: 'http', port: 8080, protocol: 'TCP' }],
  }: SliceFields = {},
): EndpointSliceObject {
  const labels = { 'kubernetes.io/service-name': service };
  return { metadata: { namespace: 'shop', name, labels }, addressType, endpoints, ports };
}

/** Service hotel in the namespace shop, with one port. */
export function addressesAt(addresses: readonly string[], fields: Partial<ServiceAddresses> = {}): ServiceAddresses {
  const ports = [{ name: 'http', port: 80, addresses }];
  const found = { namespace: 'shop', name: 'hotel', isHeadless: false, hosts: undefined, fault: undefined, ports };
  return { ...found, isUntrusted: false, ...fields };
}
