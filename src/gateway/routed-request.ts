/** A request with the route that handles it: the input of the stages. */
import type { Match, RequestAttributes } from '#routing';
import type { ClientHeaders } from './explain/conceal.ts';
import type { Route } from './route.ts';
import type { InFlightRequest } from './traffic/traffic.ts';
import type { VersionLifecycle } from './version-lifecycle.ts';

/** `shadow` is the route that receives a copy, if any. */
export interface RoutedRequest extends Match<Route> {
  readonly request: InFlightRequest;
  readonly attributes: RequestAttributes;
  readonly version: VersionLifecycle | undefined;
}

/** A request that was never sent. */
export interface ExplainedRequest extends RoutedRequest {
  readonly client: ClientHeaders;
  /** The user that the auth service is assumed to return. */
  readonly user: string | undefined;
}
