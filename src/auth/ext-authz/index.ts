/** Envoy's protocol for auth services over gRPC, ext_authz v3: its one method, and the messages of both directions. */

export {
  type CheckAnswer,
  type DeniedAnswer,
  decodeCheckAnswer,
  encodeCheckAnswer,
  type HeaderEdit,
  type OkAnswer,
} from './answer.ts';
export { type CheckAttributes, checkBytesMax, decodeCheck, encodeCheck, type PeerAddress } from './check.ts';

/** The path of a call (envoy/service/auth/v3/external_auth.proto). */
export const checkPath = '/envoy.service.auth.v3.Authorization/Check';
