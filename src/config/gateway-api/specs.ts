/** The parts of the Gateway API's objects that are read. The API server has checked their types and filled in defaults. */
import type { ClusterObject } from '../objects/object.ts';

export const gatewayApiGroup = 'gateway.networking.k8s.io';

/** The GatewayClasses with this controller are frontdesk's. */
export const controllerName = 'gateway.local/gateway-controller';

export const routeKinds = ['HTTPRoute', 'GRPCRoute'] as const;

export type RouteKind = (typeof routeKinds)[number];

export function isRoute({ kind }: ClusterObject): boolean {
  return routeKinds.some((one) => one === kind);
}

export interface GatewayClassSpec {
  readonly controllerName: string;
  readonly parametersRef?: object;
}

export interface GatewaySpec {
  readonly gatewayClassName: string;
  readonly listeners: readonly ListenerSpec[];
  readonly addresses?: readonly { readonly type?: string; readonly value?: string }[];
  readonly infrastructure?: { readonly parametersRef?: object };
  readonly tls?: { readonly frontend?: object; readonly backend?: object };
}

export interface ListenerSpec {
  readonly name: string;
  readonly hostname?: string;
  readonly port: number;
  readonly protocol: string;
  readonly tls?: { readonly mode?: string; readonly certificateRefs?: readonly ObjectReference[] };
  readonly allowedRoutes?: {
    readonly namespaces?: { readonly from?: string; readonly selector?: LabelSelector };
    readonly kinds?: readonly { readonly group?: string; readonly kind: string }[];
  };
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

/** A missing group is that of Kubernetes' core, and a missing namespace that of the object with the reference. */
export interface ObjectReference {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
}

export interface ParentReference extends ObjectReference {
  /** The name of a listener. */
  readonly sectionName?: string;
  readonly port?: number;
}

export interface RouteSpec {
  readonly parentRefs?: readonly ParentReference[];
  readonly hostnames?: readonly string[];
  readonly rules?: readonly RuleSpec[];
}

/** A rule of an HTTPRoute or of a GRPCRoute. Other members are not supported. */
export interface RuleSpec {
  readonly name?: string;
  readonly matches?: readonly MatchSpec[];
  readonly filters?: readonly FilterSpec[];
  readonly backendRefs?: readonly BackendSpec[];
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string };
}

export interface MatchSpec {
  readonly path?: { readonly type?: string; readonly value?: string };
  /** In an HTTPRoute the method of HTTP, in a GRPCRoute a service, or a method of it. */
  readonly method?: string | GrpcMethodSpec;
  readonly headers?: readonly ValueMatchSpec[];
  readonly queryParams?: readonly ValueMatchSpec[];
}

export interface GrpcMethodSpec {
  readonly type?: string;
  readonly service?: string;
  readonly method?: string;
}

export interface ValueMatchSpec {
  readonly type?: string;
  readonly name: string;
  readonly value: string;
}

export interface BackendSpec extends ObjectReference {
  readonly port?: number;
  readonly weight?: number;
  readonly filters?: readonly FilterSpec[];
}

/** The member for its type is there. */
export interface FilterSpec {
  readonly type: string;
  readonly requestHeaderModifier?: HeaderModifierSpec;
  readonly responseHeaderModifier?: HeaderModifierSpec;
  readonly requestMirror?: MirrorSpec;
  readonly requestRedirect?: RedirectSpec;
  readonly urlRewrite?: { readonly hostname?: string; readonly path?: PathModifierSpec };
  readonly cors?: CorsSpec;
  readonly extensionRef?: ObjectReference;
}

export interface HeaderModifierSpec {
  readonly set?: readonly { readonly name: string; readonly value: string }[];
  readonly add?: readonly { readonly name: string; readonly value: string }[];
  readonly remove?: readonly string[];
}

export interface MirrorSpec {
  readonly backendRef: BackendSpec;
  readonly percent?: number;
  readonly fraction?: { readonly numerator: number; readonly denominator?: number };
}

export interface PathModifierSpec {
  readonly type: string;
  readonly replaceFullPath?: string;
  readonly replacePrefixMatch?: string;
}

export interface RedirectSpec {
  readonly scheme?: 'http' | 'https';
  readonly hostname?: string;
  readonly port?: number;
  readonly path?: PathModifierSpec;
  readonly statusCode?: number;
}

export interface CorsSpec {
  readonly allowOrigins?: readonly string[];
  readonly allowMethods?: readonly string[];
  readonly allowHeaders?: readonly string[];
  readonly exposeHeaders?: readonly string[];
  readonly allowCredentials?: boolean;
  readonly maxAge?: number;
}

export interface GrantSpec {
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
}

export interface ServiceSpec {
  readonly type?: string;
  readonly ports?: readonly { readonly port: number; readonly protocol?: string; readonly appProtocol?: string }[];
}

export function specOf<Spec>({ value }: ClusterObject): Spec {
  return (value as { readonly spec: Spec }).spec;
}
