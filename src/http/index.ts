/** HTTP building blocks: errors, representations, bodies, preconditions, addresses, paths, traces, logging, server. */

export {
  type Addresses,
  type AddressOptions,
  createAddresses,
  maskAddress,
  type PublicAddress,
  type Sender,
} from './addresses.ts';
export {
  bodyFromHost,
  bodyTooLarge,
  createBodySchema,
  hasBody,
  isBodyUnread,
  markBodyRestored,
  readJsonBody,
} from './body.ts';
export { createByteQueue } from './byte-queue.ts';
export {
  createRequestContext,
  gatewayRoot,
  publicBase,
  type RequestContext,
  removeOwnNosniff,
  requestContext,
  traceOf,
  userHeader,
} from './context.ts';
export { rawJson } from './html/data.ts';
export { readPageFile, readPageFiles, type TaggedBody } from './html/files.ts';
export { blockMarkup, escapeHtml, html, htmlDocument, inlineMarkup, type Markup, pageHeaders } from './html/html.ts';
export { fingerprintOf, idempotencyKeyOf } from './idempotency.ts';
export { discardPreparedResponse, isolate } from './isolate.ts';
export { describeIssue } from './issue-text.ts';
export { createAccessLog } from './log/access-log.ts';
export {
  type CountingLogger,
  createOncePerMinute,
  createOutageLog,
  createOutageLogs,
  finalStatus,
  type Logger,
  type OutageLog,
  requestLogFields,
  silentLogger,
} from './log/log.ts';
export { fromLevel } from './log/log-level.ts';
export { createSafeLogger } from './log/safe-logger.ts';
export { preconditionFailed, preconditionOf } from './precondition.ts';
export {
  type ErrorBody,
  type Fault,
  longQueryFault,
  notReady,
  Problem,
  type ProblemOptions,
  problem,
  queryFault,
  quote,
  reasonOf,
  stopping,
} from './problem.ts';
export { createProblemResponses, type ProblemResponsesOptions } from './problem-responses.ts';
export { type ProblemKind, type ProblemSlug, problems, problemTitle } from './problems.ts';
export {
  builtInFormatters,
  createRepresentations,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  type Representations,
  withDocsLink,
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
  sendStoredResponse,
  sendTagged,
} from './respond.ts';
export { type ConnectionCounts, type ConnectionLimit, createConnectionLimit } from './server/connection-limit.ts';
export { type HttpServer, type HttpServerOptions, listenError, serveHttp } from './server/listen.ts';
export { beforeHead } from './server/node-fixes.ts';
export { nodeHttp } from './server/node-http.ts';
export { announcesBody, disableBodyTimeout } from './server/request-bodies.ts';
export { createUpgrades, type Upgrade, type UpgradeListener, type Upgrades, upgradeOf } from './server/upgrades.ts';
export { createHostCheck } from './target/host.ts';
export { createSafePath, lenientReading, originForm, pathOf, sanitisePath, searchOf } from './target/paths.ts';
export {
  boundTracestate,
  formatTraceparent,
  parseTraceparent,
  type Trace,
  type TracedCall,
  traceHeaders,
} from './trace.ts';
