/** The kinds of the Gateway API that are read, and how their paths name them. */

/** In the order in which they are tried for each kind. */
export const gatewayApiVersions: readonly string[] = ['v1', 'v1beta1'];

/** Other kinds of the group have no effect. */
export const gatewayApiPlurals: Readonly<Record<string, string>> = {
  GatewayClass: 'gatewayclasses',
  Gateway: 'gateways',
  HTTPRoute: 'httproutes',
  GRPCRoute: 'grpcroutes',
  ReferenceGrant: 'referencegrants',
};
