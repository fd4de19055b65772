/** HTTP building blocks: errors, representations, bodies, preconditions, addresses, paths, traces, logging, server. */

export {
  type Addresses,
  type AddressOptions,
  connectionScheme,
  createAddresses,
  maskAddress,
  type PublicAddress,
  type Sender,
} from './addresses.ts';
export {
  ByteQueue,
  bodyFromHost,
  bodyTooLarge,
  hasBody,
  isBodyUnread,
  markBodyRestored,
  readBody,
} from './body.ts';
export { createMachineGuard, type MachineGuard } from './client/machine-guard.ts';
export { streamsOfSessionMax } from './client/session.ts';
export { createSessions, type Sessions, type SessionsOptions } from './client/sessions.ts';
export { uncompressed } from './compression/compressed-stream.ts';
export {
  type Compression,
  type CompressionCounts,
  type CompressionRule,
  compressedStreamsMaxDefault,
  createCompression,
} from './compression/compression.ts';
export { isDigest } from './compression/response-rules.ts';
export {
  createRequestContext,
  deprecationHeader,
  formatLifecycle,
  gatewayRoot,
  homeOf,
  keyNameHeader,
  type Lifecycle,
  lifecycleOf,
  parseLifecycle,
  publicBase,
  type RequestContext,
  removeOwnNosniff,
  requestContext,
  traceOf,
  userHeader,
} from './context.ts';
export { type GrpcKind, grpcKindOf, isGrpcType } from './grpc/content-type.ts';
export { formatGrpcFrame, isGrpcFrame, parseGrpcFrame } from './grpc/frames.ts';
export { decodeGrpcMessage, encodeGrpcMessage } from './grpc/message.ts';
export {
  type GrpcStatusName,
  grpcStatus,
  grpcStatusName,
  grpcStatusOfHttp,
  grpcStatusOfRefusal,
  grpcStatusOfReset,
  httpStatusOfGrpc,
  parseGrpcStatus,
} from './grpc/status.ts';
export { formatGrpcTimeout, parseGrpcTimeout } from './grpc/timeout.ts';
export {
  createWebTextReader,
  decodeWebText,
  encodeWebText,
  formatWebTrailers,
  type GrpcWebCall,
  grpcTypeFromWeb,
  grpcWebCallOf,
  type WebTextReader,
  webTypeFromGrpc,
} from './grpc/web.ts';
export { canonicalCase, cookieOf, decodeHeader, encodeHeader } from './header-text.ts';
export {
  blockMarkup,
  escapeHtml,
  html,
  htmlDocument,
  inlineMarkup,
  type Markup,
  pageHeaders,
  readPageFile,
  readPageFiles,
  type TaggedBody,
} from './html/html.ts';
export type { PagePlace } from './html/pages.ts';
export type { PageRoute } from './html/places.ts';
export { createShowProblem } from './html/problem-pages.ts';
export { type AnyApp, discardPreparedResponse, isDataBody, isolate, serviceFault } from './isolate.ts';
export {
  createBodySchema,
  excessOfJson,
  jsonTypes,
  patchTypes,
  readJsonBody,
} from './json-body.ts';
export { createAccessLog } from './log/access-log.ts';
export { countAs, countedStatus, finalStatus, giveUpClient, hasClientLeft, replaceStatus } from './log/final-status.ts';
export { finalGrpcStatus } from './log/grpc-status.ts';
export { requestLogFields } from './log/request-log.ts';
export {
  type AddressFault,
  type AddressLists,
  createAddressFault,
  describeAddressLists,
  rejectAddress,
} from './network/access.ts';
export { preconditionFailed, preconditionOf } from './precondition.ts';
export {
  type DefinedProblems,
  defineProblems,
  type ErrorBody,
  errorBody,
  type Fault,
  longQueryFault,
  notReady,
  Problem,
  type ProblemOptions,
  problem,
  queryFault,
  reasonOf,
  stopping,
} from './problem.ts';
export {
  createGuard,
  createProblemResponses,
  type PagesPath,
  type ProblemPages,
  type ProblemResponsesOptions,
  problemPagesOf,
} from './problem-responses.ts';
export { type ProblemKind, type ProblemSlug, type ProblemTable, problems, problemTitle } from './problems.ts';
export {
  builtInFormatters,
  createRepresentations,
  type Formatter,
  htmlFormatter,
  isPage,
  jsonFormatter,
  type Representations,
  withHtmlPage,
  yamlFormatter,
} from './representations.ts';
export {
  acceptRead,
  handleOtherMethod,
  redirectTo,
  renderResponse,
  represent,
  type StoredResponse,
  sendStoredFile,
  sendStoredResponse,
} from './respond.ts';
export {
  type ConnectionCounts,
  type ConnectionLimit,
  type ConnectionShare,
  createConnectionLimit,
} from './server/admission.ts';
export { clientSubjectHeader, clientSubjectOf } from './server/client-certificates.ts';
export { waitingMaxDefault } from './server/connections.ts';
export { takeOverHttp2, upgradesOfHost } from './server/http2/host.ts';
export { expectTrailers } from './server/http2/messages.ts';
export { type HttpServer, type HttpServerOptions, serveHttp } from './server/listen.ts';
export { announcesBody, beforeHead, disableBodyTimeout } from './server/node-fixes.ts';
export { nodeHttp } from './server/node-http.ts';
export {
  connectionHeaders,
  dashedName,
  nominatedBy,
  type ReceivedHeaders,
  rejectNomination,
  removeHeaders,
} from './server/received-headers.ts';
export { type Certificates, namesFor, type ServerTls } from './server/tls-contexts.ts';
export { createUpgrades, type Upgrade, type UpgradeListener, type Upgrades, upgradeOf } from './server/upgrades.ts';
export {
  createHostCheck,
  createSafePath,
  decodeOverlong,
  dotSegment,
  originForm,
  pathOf,
  sanitisePath,
  searchOf,
} from './target.ts';
export {
  addTraceHeaders,
  boundTracestate,
  formatTraceparent,
  parseTraceparent,
  type Trace,
  type TracedCall,
} from './trace.ts';
